/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Small tensors: norms, biases and the like, always in RAM as floats. */
#include <string.h>

#include "src/base/file.h"
#include "src/file/dtype.h"
#include "src/file/rows.h"
#include "src/forward/forward_impl.h"

#define PIECE_ELEMS 256u /* a multiple of every block length */

static float *param_of(QsfForward *f, const QsfParam *p) { return f->params.mem + p->at; }

/* Elements [i, i + n) of a parameter, at most a piece. */
static void put(QsfForward *f, const QsfParam *q, uint64_t i, const uint8_t *raw, size_t n) {
    const uint64_t rows = q->tile_rows, tile = QSF_STATE_TILE;
    float x[PIECE_ELEMS], *to = param_of(f, q);
    f->table->weight[qk_type_of(q->tensor->dtype)].dequant(raw, x, n);
    if (rows == 0) memcpy(to + i, x, n * sizeof *x);
    for (uint64_t k = 0; rows > 0 && k < n; k++) {
        const uint64_t col = (i + k) / rows, row = (i + k) % rows;
        to[(col / tile * rows + row) * tile + col % tile] = x[k];
    }
}

/* Returns the bytes of n elements. */
static size_t piece_bytes(const QsfParam *q, uint64_t n) {
    const QsfDtype *d = qsf_dtype(q->tensor->dtype);
    return (size_t)(n / d->block_elems * d->block_bytes);
}

static int read_param(QsfForward *f, const QsfParam *q, QsfErr *err) {
    uint8_t raw[PIECE_ELEMS * sizeof(float)];
    for (uint64_t i = 0, m; i < q->n; i += m) {
        m = q->n - i < PIECE_ELEMS ? q->n - i : PIECE_ELEMS;
        int rc = qsf_source_read_bytes(f->model->src, q->tensor, piece_bytes(q, i), raw, piece_bytes(q, m),
                                       err);
        if (rc != QSF_OK) return rc;
        put(f, q, i, raw, (size_t)m);
    }
    return QSF_OK;
}

/* Parameters in compressed layers are read when the layer is loaded (qsf_params_of_layer). */
int qsf_params_load(QsfForward *f, QsfErr *err) {
    const QsfProgram *prog = &f->model->prog;
    QsfParams *p = &f->params;
    void *mem;
    p->bytes = qsf_pages(4 * f->shape.param_floats);
    int rc = qsf_mem_map(f->ledger, QSF_MEM_PINNED, p->bytes, "norm weights", &mem, err);
    p->mem = mem;
    for (uint32_t i = 0; rc == QSF_OK && i < prog->n_params; i++) {
        const QsfParam *q = &prog->param[i];
        const bool later = q->tensor->compressed != NULL && q->block < prog->n_blocks;
        if (!later) rc = read_param(f, q, err);
    }
    if (rc != QSF_OK || prog->ones == 0) return rc;
    float *ones = p->mem + prog->param_floats;
    for (uint32_t i = 0; i < prog->ones; i++) ones[i] = 1.0f;
    f->ones = ones;
    return QSF_OK;
}

void qsf_params_of_layer(void *arg, uint32_t layer, const uint8_t *whole) {
    QsfForward *f = arg;
    const QsfProgram *prog = &f->model->prog;
    for (uint32_t i = 0; i < prog->n_params; i++) {
        const QsfParam *q = &prog->param[i];
        if (q->block != layer) continue;
        const uint8_t *raw = whole + q->tensor->offset;
        for (uint64_t at = 0, m; at < q->n; at += m) {
            m = q->n - at < PIECE_ELEMS ? q->n - at : PIECE_ELEMS;
            put(f, q, at, raw + piece_bytes(q, at), (size_t)m);
        }
    }
}

void qsf_params_free(QsfForward *f) {
    qsf_mem_unmap(f->ledger, QSF_MEM_PINNED, f->params.mem, f->params.bytes);
}
