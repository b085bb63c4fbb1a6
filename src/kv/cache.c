/* SPDX-License-Identifier: GPL-3.0-or-later */
/* K/V tiles by cache, head and position. */
#include "src/kv/cache_impl.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/ledger.h"
#include "src/plan/kv_lend.h"
#include "src/plan/layout.h"

#define NAME "KV cache"

void qsf_kvcache_place(QsfKvCache *c, uint32_t ctx, QsfKvTypes types) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        for (unsigned which = 0; which < 2; which++)
            c->tile[i][which] = (uint32_t)qsf_kv_tile(&c->spec[i], types, which);
        c->at[i] = sum;
        sum += qsf_kv_spec_bytes(&c->spec[i], types, ctx);
    }
    c->ctx = ctx;
    c->types = types;
    qsf_kvrecent_place(c);
}

int qsf_kvcache_set_memory(QsfKvCache *c, uint32_t ctx, QsfKvTypes types, uint32_t reserved, QsfErr *err) {
    int rc = qsf_partial_set(&c->map, c->ledger, QSF_MEM_KV, NAME, qsf_kv_bytes(c->spec, c->n, types, ctx),
                             qsf_lend_kv_bytes(c->spec, c->n, types, ctx, reserved), err);
    if (rc != QSF_OK) return rc;
    c->mem = c->map.mem;
    c->reserved = reserved;
    return QSF_OK;
}

int qsf_kvcache_init(QsfKvCache *c, const QsfKvSpec *spec, uint32_t n, const qk_table *table,
                     QsfKvTypes types, uint32_t ctx, QsfLedger *ledger, QsfErr *err) {
    *c = (QsfKvCache){ .table = table, .spec = spec, .n = n, .ledger = ledger };
    qsf_kvcache_place(c, ctx, types);
    return qsf_kvcache_set_memory(c, ctx, types, ctx, err);
}

void qsf_kvcache_free(QsfKvCache *c) {
    qsf_kvlists_free(&c->lists);
    free(c->carried);
    c->carried = NULL;
    QsfErr none = { 0 };
    if (c->mem != NULL) (void)qsf_partial_set(&c->map, c->ledger, QSF_MEM_KV, NAME, 0, 0, &none);
    c->mem = NULL;
}

qk_kv qsf_kvcache_type(const QsfKvCache *c, uint32_t i, unsigned which) {
    return qsf_kv_stored(&c->spec[i], c->types, which);
}

const qk_kv_ops *qsf_kvcache_ops(const QsfKvCache *c, uint32_t i, unsigned which) {
    return &c->table->kv[qsf_kvcache_type(c, i, which)];
}

/* Bytes of all tiles of a head's K or V. */
static size_t run_bytes(const QsfKvCache *c, uint32_t i, unsigned which) {
    return qk_kv_tiles(qsf_kv_positions(&c->spec[i], c->ctx)) * c->tile[i][which];
}

QsfKvRun qsf_kvcache_run(const QsfKvCache *c, uint32_t i, uint32_t run) {
    const uint32_t heads = c->spec[i].heads;
    const unsigned which = run >= heads;
    const size_t bytes = run_bytes(c, i, which), before = which ? heads * run_bytes(c, i, 0) : 0;
    return (
        QsfKvRun){ .which = which, .at = c->at[i] + before + (run - which * heads) * bytes, .bytes = bytes };
}

static uint8_t *tiles(const QsfKvCache *c, uint32_t i, unsigned which, uint32_t head) {
    return c->mem + qsf_kvcache_run(c, i, which * c->spec[i].heads + head).at;
}

void qsf_kvcache_store(const QsfKvCache *c, uint32_t i, uint32_t pos, const float *k, const float *v) {
    const qk_kv_ops *k_ops = qsf_kvcache_ops(c, i, 0), *v_ops = qsf_kvcache_ops(c, i, 1);
    const size_t dim = c->spec[i].dim, k_run = run_bytes(c, i, 0), v_run = run_bytes(c, i, 1);
    const uint32_t ring = qsf_kvcache_ring(c, i);
    size_t place = qk_kv_wrap(pos, ring);
    if (c->lists.on && ring == 0)
        place = (size_t)qsf_kvlist_slot(&c->lists, i, pos / QK_KV_TILE) * QK_KV_TILE + pos % QK_KV_TILE;
    uint8_t *k_at = tiles(c, i, 0, 0), *v_at = k_at + c->spec[i].heads * k_run;
    for (uint32_t h = 0; h < c->spec[i].heads; h++) {
        k_ops->store(k_at + h * k_run, 0, place, k + h * dim, dim);
        if (!c->spec[i].v_is_k) v_ops->store(v_at + h * v_run, 1, place, v + h * dim, dim);
    }
    if (c->recent.on[i] && c->recent.stage != NULL) qsf_kvrecent_store(c, i, pos, k, v);
}

uint32_t qsf_kvcache_ring(const QsfKvCache *c, uint32_t i) {
    const uint32_t n = qsf_kv_positions(&c->spec[i], c->ctx);
    return n < c->ctx ? n : 0;
}

void qsf_kvcache_will_store(QsfKvCache *c, uint32_t n) {
    for (uint32_t i = 0; i < c->n; i++) {
        const uint32_t ring = qsf_kvcache_ring(c, i), end = c->n_past + n;
        if (c->lists.on && ring == 0) { /* first drop the positions that a failed pass left */
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

size_t qsf_kvcache_tile_bytes(const QsfKvCache *c, uint32_t i, unsigned which) { return c->tile[i][which]; }

uint8_t *qsf_kvcache_tile(const QsfKvCache *c, uint32_t i, unsigned which, uint32_t head, uint32_t tile) {
    const size_t at = qk_kv_wrap(tile, qsf_kvcache_ring(c, i) / QK_KV_TILE);
    return tiles(c, i, which, head) + at * qsf_kvcache_tile_bytes(c, i, which);
}

/* Evicted positions do not come back: a conversation that was shorter than when some were last
 * evicted still has them. */
uint32_t qsf_kvcache_keeps(const QsfKvCache *c, uint32_t n) {
    n = qsf_kvlists_weighed(&c->lists, n);
    if (c->lists.on && n < c->lists.evicted_at) return 0;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->lost[i] > 0 && n < (uint64_t)c->lost[i] + c->spec[i].window) return 0;
    return n;
}

void qsf_kvcache_truncate(QsfKvCache *c, uint32_t n) {
    if (n < c->n_past) c->n_past = n;
    for (uint32_t i = 0; c->lists.on && i < c->n; i++) qsf_kvlist_truncate(&c->lists, i, c->n_past);
    qsf_kvlists_restore_weights(&c->lists, c->n_past);
    if (!c->lists.on) qsf_kvlists_forget(&c->lists, c->n_past);
    if (n > 0) return;
    memset(c->lost, 0, sizeof c->lost);
    c->converted = false;
    c->lists.on = false;
    c->lists.evicted_at = 0;
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
        l->evicted_at = c->n_past;
        l->n_saved = 0;
        if (gone == 0) gone = n;
        if (l->mass != NULL && e->kind == QSF_EVICT_SNAPKV)
            memset(qsf_kvlist_mass(l, i), 0, (size_t)l->cap * QK_KV_TILE * sizeof *l->mass);
    }
    if (l->evicted_at == c->n_past) qsf_kvlists_save_weights(l, c->n_past);
    return gone;
}

/* One run of tiles by slot; used[slot] is 0 for free ones. */
static void discard_run(const QsfKvCache *c, const QsfKvRun *r, const uint8_t *used) {
    const uint32_t n = (uint32_t)qk_kv_tiles(c->ctx);
    const size_t tile = r->bytes / n;
    for (uint32_t s = 0, end; s < n; s = end) {
        for (end = s + 1; end < n && used[end] == used[s];) end++;
        if (!used[s]) qsf_mem_discard(c->mem + r->at + s * tile, (end - s) * tile);
    }
}

void qsf_kvcache_discard(QsfKvCache *c) {
    for (uint32_t i = 0; c->lists.on && i < c->n; i++) {
        if (qsf_kvcache_ring(c, i) > 0) continue;
        qsf_kvlist_sort_spare(&c->lists, i);
        const uint32_t runs = c->spec[i].heads * (c->spec[i].v_is_k ? 1 : 2);
        for (uint32_t r = 0; r < runs; r++) {
            const QsfKvRun run = qsf_kvcache_run(c, i, r);
            discard_run(c, &run, c->lists.drop);
        }
    }
}

const qk_kv_slot *qsf_kvcache_list(const QsfKvCache *c, uint32_t i, size_t *n) {
    const bool listed = c->lists.on && qsf_kvcache_ring(c, i) == 0;
    *n = listed ? c->lists.n[i] : 0;
    return listed ? qsf_kvlist(&c->lists, i) : NULL;
}
