/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/convert/pack/grouper.h"

#include <stdlib.h>
#include <string.h>

#include "src/file/dtype.h"
#include "src/file/qsf/groups.h"

int qsf_grouper_open(QsfGrouper *g, uint32_t dtype, size_t k, const qk_table *kernels, QsfEncodeSink sink,
                     void *arg, QsfErr *err) {
    const QsfDtype *d = qsf_dtype(dtype);
    *g = (QsfGrouper){
        .dtype = dtype, .k = k, .row_bytes = k / d->block_elems * d->block_bytes, .sink = sink, .arg = arg
    };
    g->pack = kernels->weight[qk_type_of(dtype)].pack;
    g->rows = malloc(QSFF_GROUP_ROWS * g->row_bytes);
    g->group = malloc(QSFF_GROUP_ROWS * g->row_bytes);
    if (g->rows != NULL && g->group != NULL) return QSF_OK;
    qsf_grouper_close(g);
    return qsf_err_memory(err, "16 rows of a tensor");
}

void qsf_grouper_close(QsfGrouper *g) {
    free(g->rows);
    free(g->group);
    *g = (QsfGrouper){ 0 };
}

int qsf_grouper_add(void *grouper, const void *data, size_t len, QsfErr *err) {
    QsfGrouper *g = grouper;
    const size_t all = QSFF_GROUP_ROWS * g->row_bytes;
    const uint8_t *p = data;
    int rc = QSF_OK;
    while (rc == QSF_OK && len > 0) {
        const size_t n = all - g->have < len ? all - g->have : len;
        memcpy(g->rows + g->have, p, n);
        g->have += n;
        p += n;
        len -= n;
        if (g->have < all) break;
        g->pack(g->group, g->rows, g->row_bytes, g->k);
        g->have = 0;
        rc = g->sink(g->arg, g->group, all, err);
    }
    return rc;
}

int qsf_grouper_end(QsfGrouper *g, QsfErr *err) {
    const size_t all = QSFF_GROUP_ROWS * g->row_bytes, rows = g->have / g->row_bytes;
    if (rows == 0) return QSF_OK;
    memset(g->rows + g->have, 0, all - g->have);
    g->have = 0;
    g->pack(g->group, g->rows, g->row_bytes, g->k);
    /* of some types a row of zeros is not */
    qsf_group_clear(g->group, g->k / qsf_dtype(g->dtype)->block_elems, g->dtype, (unsigned)rows);
    return g->sink(g->arg, g->group, all, err);
}
