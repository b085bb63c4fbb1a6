/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Collects consecutive rows into interleaved groups of 16 (file/qsf/groups.h). One thread. */
#ifndef QSF_CONVERT_PACK_GROUPER_H
#define QSF_CONVERT_PACK_GROUPER_H

#include "kernels/kernels.h"
#include "src/base/err.h"
#include "src/convert/pack/encode_rows.h"

typedef struct QsfGrouper {
    uint32_t dtype;
    size_t k, row_bytes; /* of a row */
    void (*pack)(void *dst, const void *src, size_t row_bytes, size_t k);
    uint8_t *rows, *group; /* (16, row_bytes) each */
    size_t have;           /* bytes of rows */
    QsfEncodeSink sink;
    void *arg;
} QsfGrouper;

/* Opens a grouper for rows of k elements, a multiple of the block, of a type (dtype.h) that can be
 * interleaved. Groups are passed to sink. Of kernels, only the functions that pack groups are used.
 * QSF_E_RUNTIME if out of memory; then there is nothing to close. */
int qsf_grouper_open(QsfGrouper *g, uint32_t dtype, size_t k, const qk_table *kernels, QsfEncodeSink sink,
                     void *arg, QsfErr *err);
/* A QsfEncodeSink for the bytes of the rows, in pieces of any size. Errors of the sink. */
int qsf_grouper_add(void *grouper, const void *data, size_t len, QsfErr *err);
/* Emits the last group, padded with zeros. Errors of the sink. */
int qsf_grouper_end(QsfGrouper *g, QsfErr *err);
void qsf_grouper_close(QsfGrouper *g);

#endif
