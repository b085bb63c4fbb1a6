/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Creates and destroys a forward pass: apart from replans, the only place where it allocates. */
#include <stdlib.h>

#include "src/forward/forward_impl.h"
#include "src/plan/kv_lend.h"
#include "src/stream/interleave.h"

static int map_buffers(QsfForward *f, const QsfPlan *p, QsfErr *err) {
    QsfLayout l;
    void *mem;
    qsf_shape_make(&f->shape, f->model, f->table);
    qsf_buffers_layout(f, p, &l);
    int rc = qsf_buffers_set(f, &l, err);
    if (rc != QSF_OK) return rc;
    f->logits_bytes = qsf_pages(sizeof(float) * (uint64_t)qsf_pad16(f->model->hp.n_vocab));
    rc = qsf_mem_map(f->ledger, QSF_MEM_LOGITS, f->logits_bytes, "logits", &mem, err);
    f->logits = mem;
    return rc;
}

static int load(QsfForward *f, const QsfForwardOptions *o, QsfErr *err) {
    const QsfPlan *p = o->plan;
    int rc = map_buffers(f, p, err);
    if (rc == QSF_OK)
        rc = qsf_kvcache_init(&f->kv, f->model->prog.kv, f->model->prog.n_kv, f->table, p->kv, p->ctx,
                              f->ledger, err);
    const uint32_t start = qsf_lend_positions(0, p->kv_step, p->ctx);
    if (rc == QSF_OK) rc = qsf_kvcache_reserve(&f->kv, start, err);
    if (rc == QSF_OK)
        rc = qsf_recurrent_init(&f->recurrent, &f->model->prog, p->kv, p->checkpoints, f->ledger, err);
    if (rc == QSF_OK) rc = qsf_counters_open(f, err);
    if (rc == QSF_OK) rc = qsf_reduction_open(f, err);
    if (rc == QSF_OK) rc = qsf_params_load(f, err);
    if (rc == QSF_OK) rc = qsf_embed_open(f, p, err);
    if (rc == QSF_OK) rc = qsf_sketch_open(f, p, err);
    if (rc == QSF_OK && qsf_cancelled(f)) rc = qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
    if (rc != QSF_OK) return rc;
    const QsfWeightsOptions wo = {
        .model = o->model,
        .plan = p,
        .table = f->table,
        .interleaved_types = f->exact ? 0 : qsf_interleaved_types(f->table), /* --exact uses plain rows */
        .lent = qsf_reserve_lent(f, p->ctx, p->kv, start),
        .ledger = o->ledger,
        .cancel = o->cancel,
        .counters = &f->n.io,
        .on_layer = qsf_params_of_layer,
        .on_layer_arg = f,
    };
    rc = qsf_weights_create(&f->weights, &wo, err);
    if (rc != QSF_OK) return rc;
    atomic_store_explicit(&f->n.lent, wo.lent, memory_order_relaxed);
    qsf_counters_pins(f);
    return QSF_OK;
}

int qsf_forward_create(QsfForward **out, const QsfForwardOptions *o, QsfErr *err) {
    *out = NULL;
    if (o->model->vocab_only || o->plan->ctx == 0 || o->plan->batch == 0) {
        return qsf_err_set(err, QSF_E_MODEL, "%s: the model has no weights", qsf_source_path(o->model->src));
    }
    QsfForward *f = calloc(1, sizeof *f);
    if (f == NULL) return qsf_err_memory(err, "forward pass");
    f->model = o->model;
    f->table = o->table;
    f->pool = o->pool;
    f->ledger = o->ledger;
    f->cancel = o->cancel;
    f->block = QSF_NONE;
    f->exact = o->plan->exact;
    f->wanted_ctx = o->plan->wanted_ctx;
    f->kv_step = o->plan->kv_step;
    int rc = load(f, o, err);
    if (rc != QSF_OK) {
        qsf_forward_destroy(f);
        return rc;
    }
    *out = f;
    return QSF_OK;
}

void qsf_forward_destroy(QsfForward *f) {
    if (f == NULL) return;
    qsf_weights_destroy(f->weights); /* first, because its loader writes the counters */
    qsf_params_free(f);
    qsf_kvcache_free(&f->kv);
    qsf_recurrent_free(&f->recurrent);
    qsf_embed_close(f, NULL);
    qsf_sketch_close(f, NULL);
    qsf_counters_close(f);
    qsf_reduction_close(f);
    qsf_mem_unmap(f->ledger, QSF_MEM_LOGITS, f->logits, f->logits_bytes);
    qsf_mem_unmap(f->ledger, QSF_MEM_ACTIVATIONS, f->mem, f->l.total);
    free(f);
}

int qsf_forward_settle(QsfForward *f, void (*progress)(void *arg, uint64_t done, uint64_t total), void *arg,
                       QsfErr *err) {
    int rc = qsf_forward_usable(f, err);
    if (rc == QSF_OK) rc = qsf_weights_settle(f->weights, progress, arg, err);
    if (rc == QSF_OK) rc = qsf_embed_fill(f, UINT64_MAX, err);
    return rc == QSF_OK && f->sketch.mem != NULL ? qsf_sketch_fill(f, err) : rc;
}

bool qsf_forward_stale(const QsfForward *f) {
    return atomic_load(&f->stale) || qsf_weights_stale(f->weights);
}

void qsf_forward_io(QsfForward *f, char *name, size_t name_cap, char *notice, size_t notice_cap) {
    qsf_weights_io(f->weights, name, name_cap, notice, notice_cap);
}
