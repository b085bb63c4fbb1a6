/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Raw LZ4 blocks, without a frame: one piece of memory to another. The one door to liblz4. Any thread. */
#ifndef QSF_BASE_LZ_H
#define QSF_BASE_LZ_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/err.h"

#define QSF_LZ_MAX   0x7E000000u /* bytes that a block can stand for at most (lz4.h: LZ4_MAX_INPUT_SIZE) */
#define QSF_LZ_RATIO 255u        /* times its own size is the most that a block can stand for */

/* n bytes at src as a block of at most cap bytes at dst; high: by the encoder that looks longer, for a smaller
 * block of the same kind. *out = its size, 0 when it would be longer than cap or n is 0 or above QSF_LZ_MAX.
 * QSF_E_RUNTIME without memory (16 KiB for the encoder, 256 KiB if high). */
int qsf_lz_compress(const void *src, size_t n, bool high, void *dst, size_t cap, size_t *out, QsfErr *err);
/* Whether the n bytes at src are a block that stands for exactly `whole` bytes, which are at dst then. Whatever
 * src holds, nothing outside [dst, dst + whole) is written. Allocates nothing. */
bool qsf_lz_decompress(const void *src, size_t n, void *dst, size_t whole);

#endif
