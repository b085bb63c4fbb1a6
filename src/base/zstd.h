/* SPDX-License-Identifier: GPL-3.0-or-later */
/* zstd frames, from memory to memory. The only interface to libzstd, which is optional: without it nothing
 * can be compressed or decompressed (see qsf_zstd_built). Any thread; a reader belongs to one thread at a
 * time. */
#ifndef QSF_BASE_ZSTD_H
#define QSF_BASE_ZSTD_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/err.h"

/* Upper limit of the memory of a reader (version 1.5.4 needs 96 KiB). */
#define QSF_ZSTD_READER_BYTES (192u << 10)

/* Was the program built with libzstd? */
bool qsf_zstd_built(void);

/* Compresses n bytes at src to one frame of at most cap bytes at dst, which includes the content size. *out =
 * its size, 0 if it would be longer than cap or n is 0. QSF_E_RUNTIME if out of memory (the encoder needs a
 * few MiB) or without libzstd. */
int qsf_zstd_compress(const void *src, size_t n, void *dst, size_t cap, size_t *out, QsfErr *err);

typedef struct QsfZstdReader QsfZstdReader;
/* Opens a reader. QSF_E_RUNTIME if out of memory or without libzstd. */
int qsf_zstd_open(QsfZstdReader **out, QsfErr *err);
void qsf_zstd_close(QsfZstdReader *r); /* NULL allowed */
/* Decompresses n bytes at src to dst. Returns whether they are exactly one frame of exactly `whole`
 * decompressed bytes. Never writes outside [dst, dst + whole), whatever src contains. Allocates nothing. */
bool qsf_zstd_decompress(QsfZstdReader *r, const void *src, size_t n, void *dst, size_t whole);

#endif
