/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/pack/rowreader.h"

#include <stdlib.h>

#include "src/format/dtype.h"
#include "src/format/qsf_groups.h"
#include "src/format/rows.h"

int qsf_rowreader_open(QsfRowReader *r, const QsfSource *s, const QsfTensor *t, const qk_table *kernels, QsfErr *err) {
    const QsfDtype *type = qsf_dtype(t->dtype); /* not NULL: the readers refuse unknown ones */
    *r = (QsfRowReader){ .s = s, .t = t, .number = UINT64_MAX };
    if (!qsf_dtype_row_bytes(type, t->ne[0], &r->row_bytes))
        return qsf_err_set(err, QSF_E_MODEL, "%s: tensor '%s': rows of %llu elements are no multiple of its block of %u",
                           qsf_source_path(s), t->name, (unsigned long long)t->ne[0], type->block_elems);
    if (!t->x16) return QSF_OK;
    r->unpack_row = kernels->weight[qk_type_of(t->dtype)].unpack_row; /* the reader of the file knows which types have one */
    r->group = malloc((size_t)(QSFF_GROUP_ROWS * r->row_bytes));
    return r->group != NULL ? QSF_OK : qsf_err_memory(err, "16 rows of tensor '%s'", t->name);
}

void qsf_rowreader_close(QsfRowReader *r) {
    free(r->group);
    *r = (QsfRowReader){ 0 };
}

static int fetch(QsfRowReader *r, uint64_t number, QsfErr *err) {
    const uint64_t bytes = QSFF_GROUP_ROWS * r->row_bytes;
    if (r->number == number) return QSF_OK;
    r->number = UINT64_MAX;
    int rc = qsf_source_read_bytes(r->s, r->t, number * bytes, r->group, (size_t)bytes, err);
    if (rc == QSF_OK) r->number = number;
    return rc;
}

int qsf_rowreader_read(QsfRowReader *r, uint64_t first, uint64_t n, uint8_t *out, QsfErr *err) {
    int rc = QSF_OK;
    if (r->group == NULL) return qsf_source_read_stored(r->s, r->t, first, n, out, err);
    if (first > qsf_tensor_n_rows(r->t) || n > qsf_tensor_n_rows(r->t) - first)
        return qsf_err_set(err, QSF_E_RUNTIME, "internal: read outside of tensor '%s'", r->t->name);
    for (uint64_t row = first; rc == QSF_OK && row < first + n; row++, out += r->row_bytes) {
        rc = fetch(r, row / QSFF_GROUP_ROWS, err);
        if (rc == QSF_OK) r->unpack_row(out, r->group, (unsigned)(row % QSFF_GROUP_ROWS), (size_t)r->t->ne[0]);
    }
    return rc;
}
