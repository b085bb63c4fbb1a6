/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Room in the KV caches: their memory, evictions, and the gaps that those leave. */
#include <math.h>

#include "src/forward/forward_impl.h"
#include "src/forward/kv_room.h"
#include "src/plan/kv_lend.h"

/* ---- memory of positions ---- */

/* The KV cache takes its memory in steps, as the context grows, from the weights that were
 * pinned in it (kv_lend.h). */

/* A shorter conversation gives memory back only if this part of it stays, because what is
 * pinned is read first. */
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

/* Between passes: forbids lending memory to weights, or allows it again. Returns the bytes
 * that were given back. */
static uint64_t forbid_lending(QsfForward *f, bool forbid) {
    QsfErr later = { 0 }; /* what cannot be pinned streams */
    if (f->no_lending == forbid || f->broken || f->kv_step == 0) return 0;
    const uint64_t before = lent_now(f, f->kv.reserved);
    f->no_lending = forbid;
    (void)qsf_weights_lend(f->weights, lent_now(f, f->kv.reserved), &later);
    note(f);
    return forbid ? before : 0;
}

/* ---- gaps ---- */

/* Gaps between positions that an eviction policy kept, when the cache has become longer than what the model
 * was trained for. Keys are stored rotated by their positions, and the distance between a query and the first
 * of them grows without limit, to rotations that the model never saw. As in StreamingLLM (Xiao et al. 2023)
 * the keys are then turned on, so that all that is kept is seen without gaps before the newest tile. Only
 * differences of positions matter: a key that is rotated by the angles of d positions has moved by d. */

/* The elements of a KV head's key that a rotation turns. */
typedef struct Turn {
    const QsfRopeTable *table;
    uint32_t off; /* in the head */
} Turn;

/* Finds the rotation of head h of what `store` stores; false if there is none, or another step
 * changes the key after it. */
static bool find_turn(const QsfProgram *p, const QsfStep *store, uint32_t h, uint32_t dim, Turn *out) {
    const uint32_t head = store->in.off + h * dim;
    for (const QsfStep *s = store; s-- > p->step && s->block == store->block;) {
        if (!qsf_step_writes(s, store->in)) continue;
        if (s->op != QSF_OP_ROPE) return false;
        for (uint32_t i = 0; i < s->u.rope.heads; i++) {
            const uint32_t at = s->out[0].off + i * s->u.rope.stride + s->u.rope.off;
            if (at < head || at >= head + dim) continue;
            *out = (Turn){ .table = &p->rope[s->u.rope.table], .off = at - head };
            return out->off + out->table->n_rot <= dim;
        }
        if (s->out[0].buf == store->in.buf && s->out[0].off == store->in.off) return false;
    }
    return false;
}

/* cs (n_rot / 2 pairs): the angles of d positions. */
static void angles(const QsfForward *f, const QsfRopeTable *t, uint32_t d, float *cs) {
    const double *freq = t->freq_long != NULL && f->rope_ctx > t->original_ctx ? t->freq_long : t->freq;
    for (uint32_t i = 0; i < t->n_rot / 2; i++) {
        const double a = (double)d * freq[i];
        cs[2 * i] = (float)cos(a);
        cs[2 * i + 1] = (float)sin(a);
    }
}

/* How far entry e of a list has to be for all that is kept to be without gaps, in tiles. */
static uint32_t tiles_on(const QsfKvLists *l, uint32_t cache, uint32_t e) {
    const qk_kv_slot *list = qsf_kvlist(l, cache);
    const uint32_t n = l->n[cache];
    return list[n - 1].tile - (n - 1 - e) - list[e].tile;
}

/* The tile in this slot after k. */
static void turn_tile(const QsfForward *f, uint32_t cache, const qk_kv_ops *ops, uint8_t *k, uint32_t slot,
                      const Turn *turn, const float *cs) {
    const uint32_t dim = f->kv.spec[cache].dim;
    float row[QSF_MAX_HEAD_DIM];
    const qk_rope r = {
        .x = row + turn->off, .cs = cs, .n_rot = turn->table->n_rot, .n_heads = 1, .n_pos = 1
    };
    for (uint32_t i = 0; i < QK_KV_TILE; i++) {
        const size_t place = (size_t)slot * QK_KV_TILE + i;
        ops->load(row, k, 0, place, dim);
        if (turn->table->kind == QSF_ROPE_PAIRS)
            f->table->rope_pairs_batch(&r);
        else
            f->table->rope_halves_batch(&r);
        ops->store(k, 0, place, row, dim);
    }
}

static void turn_head(const QsfForward *f, uint32_t cache, uint32_t h, const Turn *turn) {
    const QsfKvLists *l = &f->kv.lists;
    uint8_t *k = qsf_kvcache_tile(&f->kv, cache, 0, h, 0);
    float cs[QSF_MAX_HEAD_DIM];
    uint32_t made_for = 0;
    for (uint32_t e = 0; e < l->n[cache]; e++) {
        const uint32_t slot = qsf_kvlist(l, cache)[e].slot;
        const uint32_t d = tiles_on(l, cache, e) - qsf_kvlist_moved(l, cache)[slot];
        if (d == 0) continue;
        if (d != made_for) angles(f, turn->table, d * QK_KV_TILE, cs);
        made_for = d;
        turn_tile(f, cache, qsf_kvcache_ops(&f->kv, cache, 0), k, slot, turn, cs);
        uint8_t *recent = qsf_kvrecent_held(&f->kv, cache, 0, h, qsf_kvlist(l, cache)[e].tile, f->kv.n_past,
                                            qsf_recurrent_old_recent(&f->recurrent));
        const qk_kv type = qsf_kv_recent_type(&f->kv.spec[cache], f->kv.types, 0);
        if (recent != NULL) turn_tile(f, cache, &f->table->kv[type], recent, 0, turn, cs);
    }
}

/* Would the oldest position be farther from the n-th next one than the model was trained for? */
static bool too_far(const QsfForward *f, uint32_t cache, uint32_t n) {
    const QsfKvLists *l = &f->kv.lists;
    if (qsf_kvcache_ring(&f->kv, cache) > 0 || l->n[cache] == 0) return false;
    const qk_kv_slot *first = qsf_kvlist(l, cache);
    const uint64_t seen_at = ((uint64_t)first->tile + qsf_kvlist_moved(l, cache)[first->slot]) * QK_KV_TILE;
    return (uint64_t)f->kv.n_past + n > f->model->hp.n_ctx_train + seen_at;
}

void qsf_gaps_close(QsfForward *f, uint32_t n) {
    QsfKvLists *l = &f->kv.lists;
    const QsfProgram *p = &f->model->prog;
    if (!l->on || f->model->hp.n_ctx_train == 0) return;
    for (uint32_t s = 0; s < p->n_steps; s++) {
        const QsfStep *store = &p->step[s];
        const uint32_t cache = store->u.kv;
        Turn turn;
        if (store->op != QSF_OP_KV_STORE || !too_far(f, cache, n)) continue;
        const QsfKvSpec *kv = &f->kv.spec[cache];
        for (uint32_t h = 0; h < kv->heads; h++)
            if (find_turn(p, store, h, kv->dim, &turn)) turn_head(f, cache, h, &turn);
        if (f->kv.recent.on[cache])
            qsf_recurrent_forget(&f->recurrent, 0); /* their keys are where they were */
        for (uint32_t e = 0; e < l->n[cache]; e++)
            qsf_kvlist_moved(l, cache)[qsf_kvlist(l, cache)[e].slot] = tiles_on(l, cache, e);
    }
}

/* ---- evictions ---- */

/* When positions are evicted: before a pass that needs room, and with SnapKV at the end of a prompt. An
 * eighth of what may be evicted goes at a time, so that the passes of a long prompt are not small. */

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

uint32_t qsf_evicting_spare(const QsfForward *f) {
    if (f->evict.kind == QSF_EVICT_NONE) return qsf_evicting_room(f);
    return f->shrink_to > 0 ? 0 : qsf_kvcache_room(&f->kv, limit(f, false));
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
    const uint64_t lent = forbid_lending(f, short_of);
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
            "the eviction policy %s needs a context of at least %llu tokens (protected: %u, others: %u, "
            "both in blocks of %u)",
            qsf_evict_name(e->kind), (unsigned long long)least, (unsigned)e->protect, QSF_EVICT_MIN,
            QK_KV_TILE);
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
