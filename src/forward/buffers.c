/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The scratch buffers of a pass, all in one mapping. */
#include "src/forward/forward_impl.h"

static void place_buffers(QsfForward *f) {
    const QsfLayout *l = &f->l;
    f->cols = (float *)(void *)(f->mem + l->cols);
    f->spare = (float *)(void *)(f->mem + l->spare);
    for (unsigned a = 0; a < QK_ACT_N; a++) f->act[a] = f->mem + l->act[a];
    f->cs = (float *)(void *)(f->mem + l->cs);
    f->parts = (float *)(void *)(f->mem + l->parts);
    f->exact_row = (float *)(void *)(f->mem + l->exact);
    f->chosen = (uint32_t *)(void *)(f->mem + l->chosen);
    f->row = f->mem + l->row;
}

void qsf_buffers_layout(const QsfForward *f, const QsfPlan *p, QsfLayout *l) {
    qsf_layout_make(l, f->model, &f->shape, p->batch, p->ctx, p->kv, qsf_pool_threads(f->pool), p->exact);
}

int qsf_buffers_set(QsfForward *f, const QsfLayout *l, QsfErr *err) {
    void *mem = f->mem;
    int rc = qsf_mem_resize(f->ledger, QSF_MEM_ACTIVATIONS, f->l.total, l->total, "activations", &mem, err);
    if (rc != QSF_OK) return rc;
    f->mem = mem;
    f->l = *l;
    place_buffers(f);
    return QSF_OK;
}
