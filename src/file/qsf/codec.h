/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The codecs for compressed layers of a QSF file (man/qsf-format.5), by their codes QSFF_LZ4, QSFF_LZ4_HC and
 * QSFF_ZSTD. Any thread; an unpacker belongs to one thread at a time. */
#ifndef QSF_FILE_QSF_CODEC_H
#define QSF_FILE_QSF_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/zstd.h"

#define QSF_COMPRESS_RATIO 255u /* times its size in the file is the most that a compressed layer may have */

/* Returns "none", "lz4", "lz4hc" or "zstd"; static. The code must be below QSFF_COMPRESSIONS. */
const char *qsf_codec_name(uint8_t how);
/* Returns whether this build supports the codec. */
bool qsf_codec_built(uint8_t how);
/* Returns the maximum size of a decompressed layer for this codec. */
uint64_t qsf_codec_max_bytes(uint8_t how);

/* Compresses n bytes at src to at most cap bytes at dst. *out = the compressed size; 0 if it would exceed cap
 * or the ratio would exceed QSF_COMPRESS_RATIO, or if n is above qsf_codec_max_bytes. QSF_E_RUNTIME if the
 * encoder is out of memory. */
int qsf_codec_compress(uint8_t how, const void *src, size_t n, void *dst, size_t cap, size_t *out,
                       QsfErr *err);

typedef struct QsfUnpacker {
    QsfZstdReader *zstd; /* NULL until it is needed */
} QsfUnpacker;

/* Allocates the state that this codec needs, if not done yet. QSF_E_RUNTIME if out of memory. */
int qsf_unpacker_need(QsfUnpacker *u, uint8_t how, QsfErr *err);
void qsf_unpacker_close(QsfUnpacker *u); /* a zeroed one is allowed */
/* Decompresses n bytes at src to dst. Returns whether they decompress to exactly `whole` bytes. Never writes
 * outside [dst, dst + whole) and allocates nothing. */
bool qsf_unpack(const QsfUnpacker *u, uint8_t how, const void *src, size_t n, void *dst, size_t whole);

#endif
