/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Changes the plan during a conversation: first everything that the new plan does not use is freed, then the
 * rest is mapped. Positions and logits stay. */
#include <stdlib.h>
#include <string.h>

#include "src/base/ledger.h"
#include "src/forward/forward_impl.h"
#include "src/forward/kv_room.h"
#include "src/forward/ops/ops.h"
#include "src/plan/kv_lend.h"

static int check(const QsfForward *f, const QsfPlan *p, QsfErr *err) {
    if (qk_kv_tiles(p->ctx) * QK_KV_TILE < qsf_kvcache_used(&f->kv) ||
        (!f->kv.lists.on && p->ctx < f->kv.n_past) || p->ctx == 0) {
        return qsf_err_set(err, QSF_E_CONTEXT, "cannot shrink the context to %u tokens: %u are in use",
                           (unsigned)p->ctx, (unsigned)qsf_kvcache_used(&f->kv));
    }
    if (p->exact != f->exact || p->batch == 0 || p->n_units != qsf_weights_n_units(f->weights)) {
        return qsf_err_set(err, QSF_E_RUNTIME, "internal: the plan is for a different model");
    }
    return QSF_OK;
}

/* The positions in the cache, in whole steps. */
static uint32_t reserved(const QsfForward *f, const QsfPlan *p) {
    return qsf_lend_positions(f->kv.n_past, p->kv_step, p->ctx);
}

/* The memory of recent positions is returned while the types of the cache change; what it
 * holds is carried beside it. */
static int carry_recent(QsfForward *f, const QsfPlan *p, QsfErr *err) {
    const QsfProgram *prog = &f->model->prog;
    const uint64_t states = 4 * prog->state_floats, now = f->recurrent.copy - states,
                   later = qsf_state_bytes(prog, p->kv) - states;
    if (qsf_kv_types_equal(p->kv, f->kv.types) || (now == 0 && later == 0)) return QSF_OK;
    if (now > 0 && f->kv.n_past > 0) {
        f->kv.carried = malloc(now);
        if (f->kv.carried == NULL) return qsf_err_memory(err, "converting the KV cache");
        memcpy(f->kv.carried, qsf_recurrent_old_recent(&f->recurrent), now);
    }
    const QsfKvTypes none = { QK_KV_F32, QK_KV_F32 };
    return qsf_recurrent_set_types(&f->recurrent, none, 0, err);
}

/* Gives states room for recent positions of the new types, and what was carried. */
static int place_recent(QsfForward *f, const QsfPlan *p, QsfErr *err) {
    const uint64_t bytes = qsf_state_bytes(&f->model->prog, p->kv);
    if (f->recurrent.copy == bytes) return qsf_recurrent_resize(&f->recurrent, p->checkpoints, err);
    int rc = qsf_recurrent_set_types(&f->recurrent, p->kv, p->checkpoints, err);
    if (rc == QSF_OK && f->kv.carried != NULL)
        memcpy(qsf_recurrent_old_recent(&f->recurrent), f->kv.carried,
               bytes - 4 * f->model->prog.state_floats);
    free(f->kv.carried);
    f->kv.carried = NULL;
    return rc;
}

static int shrink(QsfForward *f, const QsfPlan *p, const QsfLayout *l, QsfErr *err) {
    qsf_weights_park(f->weights, p, qsf_reserve_lent(f, p->ctx, p->kv, reserved(f, p)));
    qsf_embed_close(f, p);
    qsf_sketch_close(f, p);
    qsf_mem_discard(f->mem, f->l.total); /* scratch: pages of a larger layout need not stay resident */
    int rc = l->total < f->l.total ? qsf_buffers_set(f, l, err) : QSF_OK;
    if (rc == QSF_OK) rc = carry_recent(f, p, err);
    if (rc == QSF_OK && p->checkpoints < f->recurrent.n_slots)
        rc = qsf_recurrent_resize(&f->recurrent, p->checkpoints, err);
    if (rc == QSF_OK && reserved(f, p) < f->kv.reserved)
        rc = qsf_kvcache_reserve(&f->kv, reserved(f, p), err);
    if (rc == QSF_OK) {
        const uint32_t ctx = p->ctx < f->kv.ctx ? p->ctx : f->kv.ctx;
        rc = qsf_kvcache_resize(&f->kv, ctx, qsf_kv_types_less(p->kv, f->kv.types), err);
    }
    return rc;
}

static int grow(QsfForward *f, const QsfPlan *p, const QsfLayout *l, QsfErr *err) {
    int rc = qsf_buffers_set(f, l, err);
    if (rc == QSF_OK && (p->ctx > f->kv.ctx || !qsf_kv_types_equal(p->kv, f->kv.types)))
        rc = qsf_kvcache_resize(&f->kv, p->ctx, p->kv, err);
    if (rc == QSF_OK) rc = qsf_kvcache_reserve(&f->kv, reserved(f, p), err);
    if (rc == QSF_OK) rc = place_recent(f, p, err);
    if (rc == QSF_OK) rc = qsf_forward_evict(f, &f->evict, err); /* the number of threads */
    if (rc == QSF_OK) rc = qsf_embed_open(f, p, err);
    if (rc == QSF_OK) rc = qsf_sketch_open(f, p, err);
    const uint64_t lent = qsf_reserve_lent(f, p->ctx, p->kv, reserved(f, p));
    if (rc == QSF_OK) rc = qsf_weights_resume(f->weights, p, lent, err);
    atomic_store_explicit(&f->n.lent, lent, memory_order_relaxed);
    return rc;
}

int qsf_forward_replan(QsfForward *f, const QsfPlan *p, QsfPool *pool, QsfErr *err) {
    QsfLayout l;
    QsfErr why = { 0 };
    int rc = check(f, p, err);
    if (rc != QSF_OK) return rc;
    f->pool = pool;
    f->wanted_ctx = p->wanted_ctx;
    f->kv_step = p->kv_step;
    qsf_buffers_layout(f, p, &l);
    rc = shrink(f, p, &l, &why);
    if (rc == QSF_OK) rc = grow(f, p, &l, &why);
    f->broken = rc != QSF_OK;
    f->broken_why = why;
    if (rc != QSF_OK) return qsf_err_pass(err, &why);
    qsf_counters_pins(f);
    qsf_evicting_note(f);
    return QSF_OK;
}
