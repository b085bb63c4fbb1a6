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
    const size_t place = qk_kv_wrap(pos, qsf_kvcache_ring(c, i));
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
        if (ring > 0 && end > ring && end - ring > c->lost[i]) c->lost[i] = end - ring;
    }
}

const uint8_t *qsf_kvcache_k(const QsfKvCache *c, uint32_t i, uint32_t head) { return tiles(c, i, 0, head); }

const uint8_t *qsf_kvcache_v(const QsfKvCache *c, uint32_t i, uint32_t head) {
    return c->spec[i].v_is_k ? NULL : tiles(c, i, 1, head);
}

uint32_t qsf_kvcache_keeps(const QsfKvCache *c, uint32_t n) {
    for (uint32_t i = 0; i < c->n; i++)
        if (c->lost[i] > 0 && n < (uint64_t)c->lost[i] + c->spec[i].window) return 0;
    return n;
}

void qsf_kvcache_truncate(QsfKvCache *c, uint32_t n) {
    if (n < c->n_past) c->n_past = n;
    if (n == 0) memset(c->lost, 0, sizeof c->lost);
}

/* --- resizing the context --- */

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
    const size_t n = qsf_kv_runs(&c->spec[i]), used = run_bytes(c, i, c->n_past);
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
        const uint64_t run = run_bytes(c, i, c->ctx), used = run_bytes(c, i, c->n_past);
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

int qsf_kvcache_resize(QsfKvCache *c, uint32_t ctx, QsfErr *err) {
    const uint64_t touched = c->map.bytes;
    const uint32_t reserved = c->reserved < ctx ? c->reserved : ctx;
    if (ctx < c->n_past) {
        return qsf_err_set(err, QSF_E_CONTEXT, "cannot shrink the context to %u tokens: %u are in use",
                           (unsigned)ctx, (unsigned)c->n_past);
    }
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
