/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/convert/pack/float_rows.h"

#include <string.h>

#include "src/file/dtype.h"
#include "src/file/rows.h"

enum { I2_S_TAIL = 32 }; /* bytes after the last row, which begin with the scale */

/* Reads the scale of an I2_S tensor, which is not part of its rows. */
static int read_scale(QsfWeights *w, QsfErr *err) {
    unsigned char b[4];
    int rc = qsf_source_read_bytes(w->s, w->t, w->t->bytes - I2_S_TAIL, b, sizeof b, err);
    uint32_t bits = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    if (rc == QSF_OK) memcpy(&w->scale, &bits, sizeof w->scale);
    return rc;
}

int qsf_weights_open(QsfWeights *w, const QsfSource *s, const QsfTensor *t, const qk_table *kernels,
                     QsfErr *err) {
    const QsfDtype *type = qsf_dtype(t->dtype); /* not NULL: the readers reject unknown types */
    const qk_type k = qk_type_of(qsf_dtype_of_64(t->dtype));
    *w = (QsfWeights){ .s = s, .t = t, .scale = 1.0f };
    if (k == QK_NONE)
        return qsf_err_set(err, QSF_E_MODEL, "%s: tensor '%s' is of type %s, which cannot be dequantized",
                           qsf_source_path(s), t->name, type->name);
    int rc = qsf_rowreader_open(&w->rows, s, t, kernels, err);
    w->row_bytes = w->rows.row_bytes;
    w->unpack = kernels->weight[k].dequant;
    if (rc == QSF_OK && k == QK_I2_S) rc = read_scale(w, err);
    if (rc != QSF_OK) qsf_weights_close(w);
    return rc;
}

void qsf_weights_close(QsfWeights *w) { qsf_rowreader_close(&w->rows); }

int qsf_weights_read(QsfWeights *w, uint64_t first, uint64_t n, uint8_t *raw, QsfErr *err) {
    return qsf_rowreader_read(&w->rows, first, n, raw, err);
}

void qsf_weights_unpack(const QsfWeights *w, const uint8_t *raw, size_t n, float *out) {
    const size_t k = (size_t)w->t->ne[0];
    for (size_t r = 0; r < n; r++) {
        float *row = out + r * k;
        w->unpack(raw + r * w->row_bytes, row, k);
        for (size_t i = 0; w->scale != 1.0f && i < k; i++) row[i] *= w->scale;
    }
}
