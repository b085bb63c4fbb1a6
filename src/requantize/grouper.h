/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows that come one after the other become groups of sixteen (format/qsf_groups.h). One thread. */
#ifndef QSF_PACK_GROUPER_H
#define QSF_PACK_GROUPER_H

#include "kernels/kernels.h"
#include "src/base/err.h"
#include "src/requantize/encode_rows.h"

typedef struct QsfGrouper {
    uint32_t dtype;
    size_t k, row_bytes;      /* of a row */
    void (*pack)(void *dst, const void *src, size_t row_bytes, size_t k);
    uint8_t *rows, *group;    /* (16, row_bytes) each */
    size_t have;              /* bytes of rows */
    QsfEncodeSink sink;
    void *arg;
} QsfGrouper;

/* Rows of k elements of a type (dtype.h) that has groups, k a multiple of its block; what comes of them goes to sink.
 * kernels: only its functions to pack groups are used. QSF_E_RUNTIME without memory; then there is nothing to close. */
int qsf_grouper_open(QsfGrouper *g, uint32_t dtype, size_t k, const qk_table *kernels, QsfEncodeSink sink, void *arg,
                     QsfErr *err);
/* A QsfEncodeSink: the next bytes of the rows, in pieces of any size. The sink's errors. */
int qsf_grouper_add(void *grouper, const void *data, size_t len, QsfErr *err);
/* The last group, filled up with zeros. The sink's errors. */
int qsf_grouper_end(QsfGrouper *g, QsfErr *err);
void qsf_grouper_close(QsfGrouper *g);

#endif
