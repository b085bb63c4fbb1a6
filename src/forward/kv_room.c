/* SPDX-License-Identifier: GPL-3.0-or-later */
/* When positions are evicted: before a pass that needs room, and with SnapKV at the end of a prompt. An eighth of what
 * may be evicted goes at a time, so that the passes of a long prompt are not small. */
#include "src/forward/evictable.h"
#include "src/forward/forward_impl.h"

/* A context that is not a multiple of a tile keeps fewer positions, so that it is never more than full. */
static uint32_t whole_tiles(const QsfForward *f) { return f->kv.ctx / QK_KV_TILE; }

/* Least tiles of a cache that shrinks. */
static uint32_t least_tiles(const QsfForward *f) {
    return (uint32_t)qk_kv_tiles(f->evict.protect) + QSF_EVICT_MIN / QK_KV_TILE;
}

/* What the memory allows: the whole context, or less when memory is short. */
static uint32_t allowed_tiles(const QsfForward *f) {
    const uint32_t whole = whole_tiles(f), least = least_tiles(f);
    if (f->most_tiles == 0) return whole;
    const uint32_t most = f->most_tiles > least ? f->most_tiles : least;
    return most < whole ? most : whole;
}

/* Most tiles of a cache. SnapKV sees a prompt as far as the memory holds it before it chooses. */
static uint32_t limit(const QsfForward *f, bool prompt) {
    const QsfEvict *e = &f->evict;
    const uint32_t cap = allowed_tiles(f);
    if (e->window == 0 || (e->kind == QSF_EVICT_SNAPKV && prompt)) return cap;
    const uint64_t most = qk_kv_tiles(e->protect) + (uint64_t)qk_kv_tiles(e->window);
    return most < cap ? (uint32_t)most : cap;
}

/* Where the weights are saved, states are, too: a conversation can go back to where both are. */
static void evict_to(QsfForward *f, uint32_t most) {
    const uint32_t step = (most - (uint32_t)qk_kv_tiles(f->evict.protect)) / 8;
    const uint32_t tiles = qsf_kvcache_evict(&f->kv, &f->evict, most - (step > 0 ? step : 1));
    if (f->kv.lists.mass != NULL) qsf_recurrent_save(&f->recurrent, f->kv.n_past);
    qsf_count(&f->n.evictions, 1);
    qsf_count(&f->n.evicted, (uint64_t)tiles * QK_KV_TILE);
    qsf_gaps_close(f, (tiles + 1) * QK_KV_TILE);
    qsf_evicting_note(f);
}

void qsf_evicting_note(QsfForward *f) {
    atomic_store_explicit(&f->n.missing, f->kv.n_past - qsf_forward_kept(f), memory_order_relaxed);
    atomic_store_explicit(&f->n.converted, f->kv.converted, memory_order_relaxed);
}

uint32_t qsf_evicting_room(const QsfForward *f) {
    if (f->kv.lists.on) return qsf_kvcache_room(&f->kv, whole_tiles(f));
    return f->kv.ctx - f->kv.n_past;
}

/* The cache becomes as small as qsf_forward_relieve wants it. */
static void shrink(QsfForward *f) {
    const uint32_t tiles = qsf_kvcache_evict(&f->kv, &f->evict, f->shrink_to);
    f->most_tiles = f->shrink_to;
    f->shrink_to = 0;
    qsf_kvcache_discard(&f->kv);
    qsf_gaps_close(f, QK_KV_TILE);
    qsf_count(&f->n.evictions, 1);
    qsf_count(&f->n.evicted, (uint64_t)tiles * QK_KV_TILE);
    qsf_evicting_note(f);
}

static bool start_shrinking(QsfForward *f) {
    const uint32_t used = qsf_kvcache_tiles(&f->kv), least = least_tiles(f);
    if (f->evict.kind == QSF_EVICT_NONE || f->broken || f->shrink_to > 0 || used <= least) return false;
    const uint32_t part = used - (used + 3) / 4;
    f->shrink_to = part > least ? part : least;
    f->shrink_from = f->kv.n_past + (f->evict.kind == QSF_EVICT_SNAPKV ? QSF_EVICT_OBSERVED : 0);
    if (f->shrink_from == f->kv.n_past) shrink(f);
    return true;
}

bool qsf_forward_relieve(QsfForward *f, bool short_of) {
    if (!short_of) f->most_tiles = f->shrink_to = 0;
    const uint64_t lent = qsf_reserve_forbid(f, short_of);
    const bool gave = (short_of && start_shrinking(f)) || lent > 0;
    if (gave) qsf_count(&f->n.reliefs, 1);
    return gave;
}

uint32_t qsf_evicting_make_room(QsfForward *f, size_t n, bool prompt) {
    const QsfEvictKind kind = f->evict.kind;
    if (kind == QSF_EVICT_NONE) return qsf_evicting_room(f);
    if (f->shrink_to > 0 && f->kv.n_past >= f->shrink_from) shrink(f);
    const uint32_t most = limit(f, prompt), past = f->kv.n_past;
    uint32_t room = qsf_kvcache_room(&f->kv, most);
    if (room == 0) {
        evict_to(f, most);
        room = qsf_kvcache_room(&f->kv, most);
    }
    uint64_t next = (uint64_t)past + room; /* where the next choice is made */
    if (f->shrink_to > 0 && f->shrink_from < next) next = f->shrink_from;
    if (prompt && past + n < next && qk_kv_tiles(past + n) > limit(f, false)) next = past + n;
    f->observe_from = kind == QSF_EVICT_H2O       ? 0
                      : next > QSF_EVICT_OBSERVED ? (uint32_t)(next - QSF_EVICT_OBSERVED)
                                                  : 0;
    return room;
}

void qsf_evicting_prompt_done(QsfForward *f) {
    const uint32_t most = limit(f, false);
    if (f->evict.kind == QSF_EVICT_SNAPKV && qsf_kvcache_tiles(&f->kv) > most) evict_to(f, most);
}

static bool is_sparse(const QsfProgram *p) {
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->step[i].op == QSF_OP_INDEX) return true;
    return false;
}

int qsf_evict_check(const QsfModel *m, const QsfEvict *e, uint64_t ctx, QsfErr *err) {
    const uint64_t least = (qk_kv_tiles(e->protect) + QSF_EVICT_MIN / QK_KV_TILE) * (uint64_t)QK_KV_TILE;
    if (e->kind != QSF_EVICT_NONE && is_sparse(&m->prog))
        return qsf_err_set(err, QSF_E_USAGE,
                           "%s: the eviction policy %s does not work with this model's sparse attention",
                           qsf_source_path(m->src), qsf_evict_name(e->kind));
    if (e->kind != QSF_EVICT_NONE && least > ctx)
        return qsf_err_set(
            err, QSF_E_CONTEXT,
            "the eviction policy %s needs a context of at least %llu tokens: %u protected, and %u",
            qsf_evict_name(e->kind), (unsigned long long)least, (unsigned)e->protect, QSF_EVICT_MIN);
    return QSF_OK;
}

int qsf_forward_evict(QsfForward *f, const QsfEvict *e, QsfErr *err) {
    int rc = qsf_evict_check(f->model, e, (uint64_t)whole_tiles(f) * QK_KV_TILE, err);
    if (rc != QSF_OK) return rc;
    const uint32_t threads = qsf_evict_observes(e->kind) ? (uint32_t)qsf_pool_threads(f->pool) : 0;
    rc = e->kind != QSF_EVICT_NONE || f->kv.lists.mem != NULL ? qsf_kvcache_lists(&f->kv, threads, err)
                                                              : QSF_OK;
    if (rc != QSF_OK) return rc;
    f->evict = *e;
    atomic_store_explicit(&f->n.n_protected, e->kind == QSF_EVICT_NONE ? 0 : e->protect,
                          memory_order_relaxed);
    return QSF_OK;
}

uint32_t qsf_forward_kept(const QsfForward *f) {
    const uint32_t used = qsf_kvcache_used(&f->kv);
    return used < f->kv.n_past ? used : f->kv.n_past;
}

bool qsf_forward_evicts(const QsfForward *f) { return f->evict.kind != QSF_EVICT_NONE; }

uint32_t qsf_forward_room(const QsfForward *f) { return qsf_evicting_room(f); }
