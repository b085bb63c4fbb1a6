/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The KV cache takes its memory in steps, as the context grows, from the weights that were pinned in it (kv_lend.h). */
#include "src/forward/forward_impl.h"
#include "src/plan/kv_lend.h"

/* A shorter conversation gives memory back only if this part of it stays, because what is pinned is read first. */
#define KEEP_SHARE 2u

uint64_t qsf_reserve_lent(const QsfForward *f, uint32_t ctx, QsfKvTypes types, uint32_t n) {
    if (f->no_lending) return 0;
    return qsf_kv_bytes(f->kv.spec, f->kv.n, types, ctx) -
           qsf_lend_kv_bytes(f->kv.spec, f->kv.n, types, ctx, n);
}

/* With n positions charged, and everything else as it is. */
static uint64_t lent_now(const QsfForward *f, uint32_t n) {
    return qsf_reserve_lent(f, f->kv.ctx, f->kv.types, n);
}

static void note(QsfForward *f) {
    atomic_store_explicit(&f->n.lent, lent_now(f, f->kv.reserved), memory_order_relaxed);
    qsf_counters_pins(f);
}

int qsf_reserve_positions(QsfForward *f, uint32_t n, QsfErr *err) {
    if (n > f->kv.ctx) n = f->kv.ctx; /* positions are evicted */
    if (n <= f->kv.reserved) return QSF_OK;
    const uint32_t to = qsf_lend_positions(n, f->kv_step, f->kv.ctx);
    int rc = qsf_weights_lend(f->weights, lent_now(f, to), err);
    if (rc == QSF_OK) rc = qsf_kvcache_reserve(&f->kv, to, err);
    note(f);
    return rc;
}

void qsf_reserve_trim(QsfForward *f, uint32_t n) {
    QsfErr later = { 0 }; /* what cannot be pinned streams */
    if (f->kv_step == 0) return;
    const uint32_t left = f->kv.ctx - f->kv.n_past;
    const uint32_t to = qsf_lend_positions(f->kv.n_past + (n < left ? n : left), f->kv_step, f->kv.ctx);
    if (f->broken || to > f->kv.reserved / KEEP_SHARE) return;
    if (qsf_kvcache_reserve(&f->kv, to, &later) != QSF_OK) return;
    (void)qsf_weights_lend(f->weights, lent_now(f, to), &later);
    note(f);
}

uint64_t qsf_reserve_forbid(QsfForward *f, bool forbid) {
    QsfErr later = { 0 }; /* what cannot be pinned streams */
    if (f->no_lending == forbid || f->broken || f->kv_step == 0) return 0;
    const uint64_t before = lent_now(f, f->kv.reserved);
    f->no_lending = forbid;
    (void)qsf_weights_lend(f->weights, lent_now(f, f->kv.reserved), &later);
    note(f);
    return forbid ? before : 0;
}
