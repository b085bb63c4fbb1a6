/* SPDX-License-Identifier: GPL-3.0-or-later */
/* K/V tiles by cache, head and position. */
#include "src/forward/kvcache.h"

#include <string.h>

#include "src/base/discard.h"
#include "src/plan/layout.h"
#include "src/plan/lend.h"

#define NAME "KV cache"

/* Bytes of a run: the tiles that hold n positions of one head of cache i, K or V. */
static size_t run_bytes(const QsfKvCache *c, uint32_t i, uint32_t n) {
    return qk_kv_tiles(qsf_kv_positions(&c->spec[i], n)) * c->ops->tile_bytes(c->spec[i].dim);
}

/* Fills at[i] with the bytes of the caches before cache i, for ctx positions. */
static void find_places(const QsfKvCache *c, uint32_t ctx, uint64_t at[QSF_MAX_LAYERS]) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        at[i] = sum;
        sum += (uint64_t)qsf_kv_runs(&c->spec[i]) * run_bytes(c, i, ctx);
    }
}

/* Gives the mapping the size for ctx positions, of which `reserved` are charged. */
static int set_memory(QsfKvCache *c, uint32_t ctx, uint32_t reserved, QsfErr *err) {
    const uint64_t bytes = qsf_kv_bytes(c->spec, c->n, c->ops, ctx);
    int rc = qsf_partial_set(&c->map, c->ledger, QSF_MEM_KV, NAME, bytes,
                             qsf_lend_kv_bytes(c->spec, c->n, c->ops, ctx, reserved), err);
    if (rc != QSF_OK) return rc;
    c->mem = c->map.mem;
    c->reserved = reserved;
    return QSF_OK;
}

int qsf_kvcache_init(QsfKvCache *c, const QsfKvSpec *spec, uint32_t n, const qk_kv_ops *ops, uint32_t ctx,
                     QsfLedger *ledger, QsfErr *err) {
    *c = (QsfKvCache){ .ops = ops, .spec = spec, .n = n, .ctx = ctx, .ledger = ledger };
    int rc = set_memory(c, ctx, ctx, err);
    if (rc == QSF_OK) find_places(c, ctx, c->at);
    return rc;
}

void qsf_kvcache_free(QsfKvCache *c) {
    qsf_kvlists_free(&c->lists);
    QsfErr none = { 0 };
    if (c->mem != NULL) (void)qsf_partial_set(&c->map, c->ledger, QSF_MEM_KV, NAME, 0, 0, &none);
    c->mem = NULL;
}

/* which: 0 = K, 1 = V. */
static uint8_t *tiles(const QsfKvCache *c, uint32_t i, unsigned which, uint32_t head) {
    return c->mem + c->at[i] + ((size_t)which * c->spec[i].heads + head) * run_bytes(c, i, c->ctx);
}

void qsf_kvcache_store(const QsfKvCache *c, uint32_t i, uint32_t pos, const float *k, const float *v) {
    const size_t dim = c->spec[i].dim, run = run_bytes(c, i, c->ctx);
    const uint32_t ring = qsf_kvcache_ring(c, i);
    size_t place = qk_kv_wrap(pos, ring);
    if (c->lists.on && ring == 0)
        place = (size_t)qsf_kvlist_slot(&c->lists, i, pos / QK_KV_TILE) * QK_KV_TILE + pos % QK_KV_TILE;
    uint8_t *at = tiles(c, i, 0, 0);
    for (uint32_t h = 0; h < c->spec[i].heads; h++) {
        c->ops->store(at + h * run, 0, place, k + h * dim, dim);
        if (!c->spec[i].v_is_k) c->ops->store(at + (c->spec[i].heads + h) * run, 1, place, v + h * dim, dim);
    }
}

uint32_t qsf_kvcache_ring(const QsfKvCache *c, uint32_t i) {
    const uint32_t n = qsf_kv_positions(&c->spec[i], c->ctx);
    return n < c->ctx ? n : 0;
}

void qsf_kvcache_will_store(QsfKvCache *c, uint32_t n) {
    for (uint32_t i = 0; i < c->n; i++) {
        const uint32_t ring = qsf_kvcache_ring(c, i), end = c->n_past + n;
        if (c->lists.on && ring == 0) { /* what a failed pass left goes first */
            qsf_kvlist_truncate(&c->lists, i, c->n_past);
            qsf_kvlist_extend(&c->lists, i, end);
        }
        if (ring > 0 && end > ring && end - ring > c->lost[i]) c->lost[i] = end - ring;
    }
}

const uint8_t *qsf_kvcache_k(const QsfKvCache *c, uint32_t i, uint32_t head) { return tiles(c, i, 0, head); }

const uint8_t *qsf_kvcache_v(const QsfKvCache *c, uint32_t i, uint32_t head) {
    return c->spec[i].v_is_k ? NULL : tiles(c, i, 1, head);
}

size_t qsf_kvcache_tile_bytes(const QsfKvCache *c, uint32_t i, unsigned which) {
    (void)which;
    return c->ops->tile_bytes(c->spec[i].dim);
}

uint8_t *qsf_kvcache_tile(const QsfKvCache *c, uint32_t i, unsigned which, uint32_t head, uint32_t tile) {
    const size_t at = qk_kv_wrap(tile, qsf_kvcache_ring(c, i) / QK_KV_TILE);
    return tiles(c, i, which, head) + at * qsf_kvcache_tile_bytes(c, i, which);
}

/* Evicted positions do not come back: before the last one of them there would be holes that a conversation of that length
 * would not have. */
uint32_t qsf_kvcache_keeps(const QsfKvCache *c, uint32_t n) {
    if (c->lists.on && n < c->lists.evicted_end) return 0;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->lost[i] > 0 && n < (uint64_t)c->lost[i] + c->spec[i].window) return 0;
    return n;
}

void qsf_kvcache_truncate(QsfKvCache *c, uint32_t n) {
    if (n < c->n_past) c->n_past = n;
    for (uint32_t i = 0; c->lists.on && i < c->n; i++) qsf_kvlist_truncate(&c->lists, i, c->n_past);
    if (!c->lists.on) qsf_kvlists_forget(&c->lists, c->n_past);
    if (n > 0) return;
    memset(c->lost, 0, sizeof c->lost);
    c->lists.on = false;
    c->lists.evicted_end = 0;
    qsf_kvlists_forget(&c->lists, 0);
}

/* --- eviction --- */

int qsf_kvcache_lists(QsfKvCache *c, uint32_t threads, QsfErr *err) {
    if (c->lists.mem == NULL) return qsf_kvlists_init(&c->lists, c->n, c->ctx, threads, c->ledger, err);
    return c->lists.threads == threads ? QSF_OK : qsf_kvlists_resize(&c->lists, c->ctx, threads, err);
}

uint32_t qsf_kvcache_tiles(const QsfKvCache *c) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        if (qsf_kvcache_ring(c, i) > 0) continue;
        const uint32_t n = c->lists.on ? c->lists.n[i] : (uint32_t)qk_kv_tiles(c->n_past);
        if (n > most) most = n;
    }
    return most;
}

uint32_t qsf_kvcache_room(const QsfKvCache *c, uint32_t tiles) {
    const uint32_t used = qsf_kvcache_tiles(c), left = c->n_past % QK_KV_TILE;
    if (used == 0 && c->n_past > 0) return UINT32_MAX; /* only rings, or no caches */
    return (used < tiles ? (tiles - used) * QK_KV_TILE : 0) + (left > 0 ? QK_KV_TILE - left : 0);
}

uint32_t qsf_kvcache_evict(QsfKvCache *c, const QsfEvict *e, uint32_t target) {
    QsfKvLists *l = &c->lists;
    uint32_t gone = 0;
    if (!l->on) qsf_kvlists_start(l, c->n_past);
    for (uint32_t i = 0; i < c->n; i++) {
        if (qsf_kvcache_ring(c, i) > 0) continue;
        qsf_kvlist_truncate(l, i, c->n_past);
        QsfEvictView v = { .list = qsf_kvlist(l, i), .n = l->n[i], .out = l->drop };
        v.protect = (uint32_t)qk_kv_tiles(e->protect);
        if (v.n <= target || v.n <= v.protect) continue;
        v.drop = v.n - (target > v.protect ? target : v.protect);
        v.mass = l->mass != NULL ? qsf_kvlist_mass(l, i) : NULL;
        memset(l->drop, 0, v.n);
        qsf_evict_choose(e->kind, &v);
        const uint32_t n = qsf_kvlist_remove(l, i);
        if (gone == 0) gone = n;
        if (l->mass != NULL && e->kind == QSF_EVICT_SNAPKV)
            memset(qsf_kvlist_mass(l, i), 0, (size_t)l->cap * QK_KV_TILE * sizeof *l->mass);
    }
    return gone;
}

const qk_kv_slot *qsf_kvcache_list(const QsfKvCache *c, uint32_t i, size_t *n) {
    const bool listed = c->lists.on && qsf_kvcache_ring(c, i) == 0;
    *n = listed ? c->lists.n[i] : 0;
    return listed ? qsf_kvlist(&c->lists, i) : NULL;
}

/* --- resizing the context --- */

/* Positions from the start of a run of cache i that hold something; of lists, once they are packed. */
static uint32_t used_positions(const QsfKvCache *c, uint32_t i) {
    return c->lists.on && qsf_kvcache_ring(c, i) == 0 ? c->lists.n[i] * QK_KV_TILE : c->n_past;
}

static size_t used_bytes(const QsfKvCache *c, uint32_t i) { return run_bytes(c, i, used_positions(c, i)); }

/* Moves tiles so that those in use come first: the memory after them can then be returned. */
static void pack(QsfKvCache *c, uint32_t i) {
    const size_t tile = c->ops->tile_bytes(c->spec[i].dim), run = run_bytes(c, i, c->ctx);
    qk_kv_slot *list = qsf_kvlist(&c->lists, i);
    const uint32_t n = c->lists.n[i];
    uint32_t free = 0;
    memset(c->lists.drop, 0, c->lists.cap);
    for (uint32_t e = 0; e < n; e++) c->lists.drop[list[e].slot] = 1;
    for (uint32_t e = 0; e < n; e++) {
        if (list[e].slot < n) continue;
        while (c->lists.drop[free]) free++;
        for (uint32_t k = 0; k < qsf_kv_runs(&c->spec[i]); k++) {
            uint8_t *at = c->mem + c->at[i] + k * run;
            memcpy(at + free * tile, at + list[e].slot * tile, tile);
        }
        if (c->lists.mass != NULL)
            memcpy(qsf_kvlist_mass(&c->lists, i) + (size_t)free * QK_KV_TILE,
                   qsf_kvlist_mass(&c->lists, i) + (size_t)list[e].slot * QK_KV_TILE,
                   QK_KV_TILE * sizeof *c->lists.mass);
        list[e].slot = free++;
    }
}

/* Discards what [from, from + n) does not share with [to, to + n). */
static void discard_old(uint8_t *from, const uint8_t *to, size_t n) {
    const uint8_t *lo = from, *hi = from + n;
    if (to == from) return;
    if (to < from && to + n > lo) lo = to + n;
    if (to > from && to < hi) hi = to;
    qsf_mem_discard(from + (lo - from), (uint64_t)(hi - lo));
}

/* Moves the tiles in use of cache i from its place for c->ctx positions to `at`, its place for ctx. When shrinking,
 * the first run moves first; when growing, the last one, so that no run overwrites one that has not moved yet. What a run
 * leaves is returned at once, because no more than its memory is charged. */
static void move_cache(QsfKvCache *c, uint32_t i, uint32_t ctx, uint64_t at) {
    const size_t n = qsf_kv_runs(&c->spec[i]), used = used_bytes(c, i);
    const size_t old = run_bytes(c, i, c->ctx), now = run_bytes(c, i, ctx);
    uint8_t *from = c->mem + c->at[i], *to = c->mem + at;
    for (size_t k = 0; k < n && used > 0; k++) {
        const size_t run = now < old ? k : n - 1 - k;
        memmove(to + run * now, from + run * old, used);
        discard_old(from + run * old, to + run * now, used);
    }
}

static void move_caches(QsfKvCache *c, uint32_t ctx) {
    uint64_t at[QSF_MAX_LAYERS];
    find_places(c, ctx, at);
    for (uint32_t k = 0; k < c->n && qk_kv_tiles(ctx) != qk_kv_tiles(c->ctx); k++) {
        const uint32_t i = ctx < c->ctx ? k : c->n - 1 - k;
        move_cache(c, i, ctx, at[i]);
    }
    memcpy(c->at, at, c->n * sizeof *at);
    c->ctx = ctx;
}

/* Discards the pages between the tiles in use of one run and the next run; nothing beyond `touched` is
 * resident. */
static void discard_gaps(QsfKvCache *c, uint64_t touched) {
    uint64_t at = 0;
    if (c->n_past == 0) {
        qsf_mem_discard(c->mem, touched);
        return;
    }
    for (uint32_t i = 0; i < c->n; i++) {
        const uint64_t run = run_bytes(c, i, c->ctx), used = used_bytes(c, i);
        for (uint32_t k = 0; k < qsf_kv_runs(&c->spec[i]); k++, at += run) {
            if (at + used >= touched) return;
            qsf_mem_discard(c->mem + at + used, run - used);
        }
    }
}

int qsf_kvcache_reserve(QsfKvCache *c, uint32_t n, QsfErr *err) {
    if (n < c->reserved) discard_gaps(c, c->map.bytes);
    return set_memory(c, c->ctx, n, err);
}

static int resize(QsfKvCache *c, uint32_t ctx, QsfErr *err) {
    const uint64_t touched = c->map.bytes;
    const uint32_t reserved = c->reserved < ctx ? c->reserved : ctx;
    if (ctx <= c->ctx) {
        if (ctx < c->ctx) move_caches(c, ctx);
        int rc = set_memory(c, ctx, reserved, err);
        discard_gaps(c, c->map.bytes);
        return rc;
    }
    int rc = set_memory(c, ctx, reserved, err);
    if (rc != QSF_OK) return rc;
    move_caches(c, ctx);
    discard_gaps(c, touched);
    return QSF_OK;
}

uint32_t qsf_kvcache_used(const QsfKvCache *c) {
    return c->lists.on ? qsf_kvcache_tiles(c) * QK_KV_TILE : c->n_past;
}

/* Rings could become something else, which their positions would not fit. */
static bool rings_change(const QsfKvCache *c, uint32_t ctx) {
    for (uint32_t i = 0; i < c->n; i++)
        if ((qsf_kv_positions(&c->spec[i], ctx) < ctx) != (qsf_kvcache_ring(c, i) > 0)) return true;
    return false;
}

int qsf_kvcache_resize(QsfKvCache *c, uint32_t ctx, QsfErr *err) {
    if (qk_kv_tiles(ctx) * QK_KV_TILE < qsf_kvcache_used(c) || (!c->lists.on && ctx < c->n_past)) {
        return qsf_err_set(err, QSF_E_CONTEXT, "cannot shrink the context to %u tokens: %u are in use",
                           (unsigned)ctx, (unsigned)qsf_kvcache_used(c));
    }
    if (c->lists.on && rings_change(c, ctx))
        return qsf_err_set(err, QSF_E_CONTEXT,
                           "cannot change the context to %u tokens after positions were evicted: clear the "
                           "conversation first",
                           (unsigned)ctx);
    for (uint32_t i = 0; c->lists.on && i < c->n; i++)
        if (qsf_kvcache_ring(c, i) == 0) pack(c, i);
    int rc = c->lists.mem != NULL ? qsf_kvlists_resize(&c->lists, ctx, c->lists.threads, err) : QSF_OK;
    return rc == QSF_OK ? resize(c, ctx, err) : rc;
}
