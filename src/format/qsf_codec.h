/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The compressions that a layer of a QSF file can have (man/qsf-format.5), by their codes QSFF_LZ4, QSFF_LZ4_HC and
 * QSFF_ZSTD. Any thread; an unpacker belongs to one at a time. */
#ifndef QSF_FORMAT_QSF_CODEC_H
#define QSF_FORMAT_QSF_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/zstd.h"

#define QSF_COMPRESS_RATIO 255u /* times its size in the file is the most that a compressed layer may have */

/* "none", "lz4", "lz4hc", "zstd"; static. Codes below QSFF_COMPRESSIONS. */
const char *qsf_codec_name(uint8_t how);
/* Whether this build has it. */
bool qsf_codec_built(uint8_t how);
/* Most bytes that a layer of this compression can have when decompressed. */
uint64_t qsf_codec_max_bytes(uint8_t how);

/* n bytes at src to at most cap bytes at dst. *out = their number, 0 when they would be more, or fewer than n /
 * QSF_COMPRESS_RATIO, or n is above qsf_codec_max_bytes. QSF_E_RUNTIME: no memory for the encoder. */
int qsf_codec_compress(uint8_t how, const void *src, size_t n, void *dst, size_t cap, size_t *out, QsfErr *err);

typedef struct QsfUnpacker {
    QsfZstdReader *zstd; /* NULL until it is needed */
} QsfUnpacker;

/* Makes what this compression needs, if it is not there yet. QSF_E_RUNTIME without memory. */
int qsf_unpacker_need(QsfUnpacker *u, uint8_t how, QsfErr *err);
void qsf_unpacker_close(QsfUnpacker *u); /* a zeroed one is allowed */
/* Whether the n bytes at src give exactly `whole` bytes, which are at dst then. Nothing else is written, nothing
 * allocated. */
bool qsf_unpack(const QsfUnpacker *u, uint8_t how, const void *src, size_t n, void *dst, size_t whole);

#endif
