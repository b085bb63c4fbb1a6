/* SPDX-License-Identifier: GPL-3.0-or-later */
/* zstd frames, one piece of memory to another. The one door to libzstd, which a build may lack: then nothing can be
 * compressed or decompressed, and qsf_zstd_built says so. Any thread; a reader belongs to one at a time. */
#ifndef QSF_BASE_ZSTD_H
#define QSF_BASE_ZSTD_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/err.h"

/* Memory of a reader, at most, with room to spare (1.5.4: 96 KiB). */
#define QSF_ZSTD_READER_BYTES (192u << 10)

bool qsf_zstd_built(void);

/* n bytes at src as one frame of at most cap bytes at dst, which says their number. *out = its size, 0 when it would
 * be longer than cap or n is 0. QSF_E_RUNTIME without memory (some MiB for the encoder) or without libzstd. */
int qsf_zstd_compress(const void *src, size_t n, void *dst, size_t cap, size_t *out, QsfErr *err);

typedef struct QsfZstdReader QsfZstdReader;
/* QSF_E_RUNTIME without memory or libzstd. */
int qsf_zstd_open(QsfZstdReader **out, QsfErr *err);
void qsf_zstd_close(QsfZstdReader *r); /* NULL allowed */
/* Whether the n bytes at src are one frame that stands for exactly `whole` bytes, which are at dst then. Whatever src
 * holds, nothing outside [dst, dst + whole) is written. Allocates nothing. */
bool qsf_zstd_decompress(QsfZstdReader *r, const void *src, size_t n, void *dst, size_t whole);

#endif
