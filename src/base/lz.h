/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Raw LZ4 blocks, without a frame, from memory to memory. The only interface to liblz4. Any thread. */
#ifndef QSF_BASE_LZ_H
#define QSF_BASE_LZ_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/err.h"

#define QSF_LZ_MAX   0x7E000000u /* maximum size of a decompressed block (lz4.h: LZ4_MAX_INPUT_SIZE) */
#define QSF_LZ_RATIO 255u        /* maximum compression ratio of a block */

/* Compresses n bytes at src to a block of at most cap bytes at dst; high selects the slower LZ4 HC encoder,
 * for a smaller block in the same format. *out = its size, 0 if it would be longer than cap or if n is 0 or
 * above QSF_LZ_MAX. QSF_E_RUNTIME if out of memory (16 KiB for the encoder, 256 KiB if high). */
int qsf_lz_compress(const void *src, size_t n, bool high, void *dst, size_t cap, size_t *out, QsfErr *err);
/* Decompresses n bytes at src to dst. Returns whether they are a valid block of exactly `whole` decompressed
 * bytes. Never writes outside [dst, dst + whole), whatever src contains. Allocates nothing. */
bool qsf_lz_decompress(const void *src, size_t n, void *dst, size_t whole);

#endif
