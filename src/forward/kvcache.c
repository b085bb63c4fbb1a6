/* SPDX-License-Identifier: GPL-3.0-or-later */
/* K/V tiles by layer, head and position. */
#include "src/forward/kvcache.h"

#include <string.h>

#include "src/base/discard.h"
#include "src/plan/layout.h"

#define NAME "KV cache"

int qsf_kvcache_init(QsfKvCache *c, const QsfHparams *hp, const qk_kv_ops *ops, uint32_t ctx,
                     QsfLedger *ledger, QsfErr *err) {
    void *mem;
    memset(c, 0, sizeof *c);
    uint64_t bytes = qsf_kv_bytes(hp, ops, ctx);
    int rc = qsf_mem_map(ledger, QSF_MEM_KV, bytes, NAME, &mem, err);
    if (rc != QSF_OK) return rc;
    *c = (QsfKvCache){ .ops = ops,
                       .mem = mem,
                       .bytes = bytes,
                       .n_layers = hp->n_layers,
                       .n_kv_heads = hp->n_kv_heads,
                       .head_dim = hp->head_dim,
                       .ctx = ctx,
                       .tile = ops->tile_bytes(hp->head_dim),
                       .ledger = ledger };
    return QSF_OK;
}

void qsf_kvcache_free(QsfKvCache *c) {
    if (c->mem != NULL) qsf_mem_unmap(c->ledger, QSF_MEM_KV, c->mem, c->bytes);
    c->mem = NULL;
}

/* Bytes of a run: the tiles of n positions of one layer and head, K or V. */
static size_t run_bytes(const QsfKvCache *c, size_t n) { return qk_kv_tiles(n) * c->tile; }

/* which: 0 = K, 1 = V. */
static uint8_t *tiles(const QsfKvCache *c, uint32_t layer, unsigned which, uint32_t head) {
    size_t index = ((size_t)layer * 2 + which) * c->n_kv_heads + head;
    return c->mem + index * run_bytes(c, c->ctx);
}

void qsf_kvcache_store(QsfKvCache *c, uint32_t layer, uint32_t pos, const float *k, const float *v) {
    for (uint32_t h = 0; h < c->n_kv_heads; h++) {
        c->ops->store(tiles(c, layer, 0, h), 0, pos, k + (size_t)h * c->head_dim, c->head_dim);
        c->ops->store(tiles(c, layer, 1, h), 1, pos, v + (size_t)h * c->head_dim, c->head_dim);
    }
}

const uint8_t *qsf_kvcache_k(const QsfKvCache *c, uint32_t layer, uint32_t head) {
    return tiles(c, layer, 0, head);
}

const uint8_t *qsf_kvcache_v(const QsfKvCache *c, uint32_t layer, uint32_t head) {
    return tiles(c, layer, 1, head);
}

void qsf_kvcache_truncate(QsfKvCache *c, uint32_t n) {
    if (n < c->n_past) c->n_past = n;
}

/* --- resizing the context --- */

static size_t n_runs(const QsfKvCache *c) { return (size_t)c->n_layers * 2 * c->n_kv_heads; }

/* Moves the tiles in use from runs for c->ctx positions to runs for ctx. When shrinking, the first run moves
 * first; when growing, the last one, so that no run overwrites one that has not moved yet. */
static void move_runs(QsfKvCache *c, uint32_t ctx) {
    size_t n = n_runs(c), used = run_bytes(c, c->n_past), old = run_bytes(c, c->ctx), now = run_bytes(c, ctx);
    for (size_t i = 1; i < n && used > 0 && now != old; i++) {
        size_t run = now < old ? i : n - i;
        memmove(c->mem + run * now, c->mem + run * old, used);
    }
    c->ctx = ctx;
}

/* Discards the pages between the tiles in use of one run and the next run; nothing beyond `touched` is
 * resident. */
static void discard_gaps(QsfKvCache *c, uint64_t touched) {
    size_t n = n_runs(c), run = run_bytes(c, c->ctx), used = run_bytes(c, c->n_past);
    for (size_t i = 0; i < n; i++) {
        uint64_t from = i * run + used, to = (i + 1) * run;
        if (from >= touched) return;
        qsf_mem_discard(c->mem + from, to - from);
    }
}

static int resize_memory(QsfKvCache *c, uint64_t bytes, QsfErr *err) {
    void *mem = c->mem;
    int rc = qsf_mem_resize(c->ledger, QSF_MEM_KV, c->bytes, bytes, NAME, &mem, err);
    if (rc != QSF_OK) return rc;
    c->mem = mem;
    c->bytes = bytes;
    return QSF_OK;
}

int qsf_kvcache_resize(QsfKvCache *c, uint32_t ctx, QsfErr *err) {
    uint64_t need = qsf_pages(n_runs(c) * (uint64_t)run_bytes(c, ctx)), touched = c->bytes;
    if (ctx < c->n_past) {
        return qsf_err_set(err, QSF_E_CONTEXT, "cannot shrink the context to %u tokens: %u are in use",
                           (unsigned)ctx, (unsigned)c->n_past);
    }
    if (ctx <= c->ctx) {
        if (ctx < c->ctx) move_runs(c, ctx);
        int rc = resize_memory(c, need, err);
        discard_gaps(c, c->bytes);
        return rc;
    }
    int rc = need > c->bytes ? resize_memory(c, need, err) : QSF_OK;
    if (rc != QSF_OK) return rc;
    move_runs(c, ctx);
    discard_gaps(c, touched);
    return QSF_OK;
}
