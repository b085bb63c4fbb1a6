/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Small tensors: norms, biases and the like, always in RAM as floats. */
#include "src/base/file.h"
#include "src/format/dtype.h"
#include "src/format/rows.h"
#include "src/forward/state.h"

#define PIECE_ELEMS 256u /* a multiple of every block length */

static int read_floats(QsfForward *f, const QsfTensor *t, uint64_t n, float *dst, QsfErr *err) {
    const QsfDtype *d = qsf_dtype(t->dtype);
    const qk_weight_ops *ops = &f->table->weight[qk_type_of(t->dtype)];
    uint64_t off = 0;
    uint8_t raw[PIECE_ELEMS * sizeof(float)];
    for (uint64_t i = 0; i < n; i += PIECE_ELEMS) {
        uint64_t left = n - i, m = left < PIECE_ELEMS ? left : PIECE_ELEMS;
        size_t bytes = (size_t)(m / d->block_elems * d->block_bytes);
        int rc = qsf_source_read_bytes(f->model->src, t, off, raw, bytes, err);
        if (rc != QSF_OK) return rc;
        ops->dequant(raw, dst + i, (size_t)m);
        off += bytes;
    }
    return QSF_OK;
}

static float *param_of(QsfForward *f, const QsfParam *p) { return f->params.mem + p->at; }

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
        if (!later) rc = read_floats(f, q->tensor, q->n, param_of(f, q), err);
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
        f->table->weight[qk_type_of(q->tensor->dtype)].dequant(whole + q->tensor->offset, param_of(f, q),
                                                               (size_t)q->n);
    }
}

void qsf_params_free(QsfForward *f) {
    qsf_mem_unmap(f->ledger, QSF_MEM_PINNED, f->params.mem, f->params.bytes);
}
