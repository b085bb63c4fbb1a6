/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Building and tearing down a forward pass: the only place where it allocates. */
#include <stdlib.h>

#include "src/forward/state.h"

static void place_buffers(QsfForward *f) {
    const QsfLayout *l = &f->l;
    float *work = (float *)(void *)(f->mem + l->work);
    f->x = (float *)(void *)(f->mem + l->x);
    f->xn = (float *)(void *)(f->mem + l->xn);
    f->spare = work;
    f->q = work;
    f->k = f->q + (size_t)l->n_cols * l->q_stride;
    f->v = f->k + (size_t)l->n_cols * l->kv_stride;
    f->gate = work;
    f->up = work + (size_t)l->n_cols * l->ffn_stride;
    for (unsigned a = 0; a < QK_ACT_N; a++) f->act[a] = f->mem + l->act[a];
    f->cs = (float *)(void *)(f->mem + l->cs);
    f->scores = (float *)(void *)(f->mem + l->scores);
    f->exact_row = (float *)(void *)(f->mem + l->exact);
    f->row = f->mem + l->row;
}

static int map_buffers(QsfForward *f, const QsfPlan *p, QsfErr *err) {
    QsfShape s;
    void *mem;
    qsf_shape_make(&s, f->model, f->table);
    qsf_layout_make(&f->l, f->model, &s, p->batch, p->ctx, qsf_pool_threads(f->pool), p->exact);
    int rc = qsf_mem_map(f->ledger, QSF_MEM_ACTIVATIONS, f->l.total, "activations", &mem, err);
    if (rc != QSF_OK) return rc;
    f->mem = mem;
    place_buffers(f);
    f->logits_bytes = qsf_pages(sizeof(float) * (uint64_t)qsf_pad16(f->model->hp.n_vocab));
    rc = qsf_mem_map(f->ledger, QSF_MEM_LOGITS, f->logits_bytes, "logits", &mem, err);
    f->logits = mem;
    return rc;
}

static int load(QsfForward *f, const QsfForwardOptions *o, QsfErr *err) {
    const QsfPlan *p = o->plan;
    int rc = map_buffers(f, p, err);
    if (rc == QSF_OK)
        rc = qsf_kvcache_init(&f->kv, &f->model->hp, &f->table->kv[p->kv], p->ctx, f->ledger, err);
    if (rc == QSF_OK) rc = qsf_params_load(f, err);
    if (rc == QSF_OK) rc = qsf_embed_load(f, p->embed_resident, err);
    if (rc != QSF_OK) return rc;
    const QsfWeightsOptions wo = { .model = o->model,
                                   .plan = p,
                                   .ledger = o->ledger,
                                   .cancel = o->cancel,
                                   .counters = &f->n.io };
    return qsf_weights_create(&f->weights, &wo, err);
}

int qsf_forward_create(QsfForward **out, const QsfForwardOptions *o, QsfErr *err) {
    *out = NULL;
    if (o->model->vocab_only || o->plan->ctx == 0 || o->plan->batch == 0) {
        return qsf_err_set(err, QSF_E_MODEL, "%s: there are no weights to compute with",
                           qsf_source_path(o->model->src));
    }
    QsfForward *f = calloc(1, sizeof *f);
    if (f == NULL) return qsf_err_set(err, QSF_E_RUNTIME, "out of memory: forward pass");
    f->model = o->model;
    f->table = o->table;
    f->pool = o->pool;
    f->ledger = o->ledger;
    f->cancel = o->cancel;
    f->exact = o->plan->exact;
    int rc = load(f, o, err);
    if (rc != QSF_OK) {
        qsf_forward_destroy(f);
        return rc;
    }
    qsf_forward_stats_reset(f);
    *out = f;
    return QSF_OK;
}

void qsf_forward_destroy(QsfForward *f) {
    if (f == NULL) return;
    qsf_weights_destroy(f->weights);
    qsf_params_free(f);
    qsf_kvcache_free(&f->kv);
    qsf_mem_unmap(f->ledger, QSF_MEM_EMBED, f->embed, f->embed_bytes);
    qsf_mem_unmap(f->ledger, QSF_MEM_LOGITS, f->logits, f->logits_bytes);
    qsf_mem_unmap(f->ledger, QSF_MEM_ACTIVATIONS, f->mem, f->l.total);
    free(f);
}
