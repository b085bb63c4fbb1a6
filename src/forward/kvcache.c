/* SPDX-License-Identifier: GPL-3.0-or-later */
/* K/V rows by layer, head and position. */
#include "src/forward/kvcache.h"

#include <string.h>

#include "src/base/discard.h"
#include "src/stream/layout.h"

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
                       .row = ops->row_bytes(hp->head_dim),
                       .ledger = ledger };
    return QSF_OK;
}

void qsf_kvcache_free(QsfKvCache *c) {
    if (c->mem != NULL) qsf_mem_unmap(c->ledger, QSF_MEM_KV, c->mem, c->bytes);
    c->mem = NULL;
}

/* which: 0 = K, 1 = V. */
static uint8_t *rows(const QsfKvCache *c, uint32_t layer, unsigned which, uint32_t head) {
    size_t index = ((size_t)layer * 2 + which) * c->n_kv_heads + head;
    return c->mem + index * c->ctx * c->row;
}

void qsf_kvcache_store(QsfKvCache *c, uint32_t layer, uint32_t pos, const float *k, const float *v) {
    for (uint32_t h = 0; h < c->n_kv_heads; h++) {
        size_t at = (size_t)pos * c->row;
        c->ops->store(rows(c, layer, 0, h) + at, k + (size_t)h * c->head_dim, c->head_dim);
        c->ops->store(rows(c, layer, 1, h) + at, v + (size_t)h * c->head_dim, c->head_dim);
    }
}

const uint8_t *qsf_kvcache_k(const QsfKvCache *c, uint32_t layer, uint32_t head) {
    return rows(c, layer, 0, head);
}

const uint8_t *qsf_kvcache_v(const QsfKvCache *c, uint32_t layer, uint32_t head) {
    return rows(c, layer, 1, head);
}

void qsf_kvcache_truncate(QsfKvCache *c, uint32_t n) {
    if (n < c->n_past) c->n_past = n;
}

/* --- another context length --- */

/* Runs of rows, one per layer, K or V, and head. */
static size_t n_runs(const QsfKvCache *c) { return (size_t)c->n_layers * 2 * c->n_kv_heads; }

/* The rows in use, from runs that are c->ctx positions apart to runs that are ctx apart. Towards the start
 * the first run moves first, away from it the last one: no run lands on another that has yet to move. */
static void move_runs(QsfKvCache *c, uint32_t ctx) {
    size_t n = n_runs(c), used = c->n_past * c->row;
    for (size_t i = 1; i < n && used > 0; i++) {
        size_t run = ctx < c->ctx ? i : n - i;
        memmove(c->mem + run * ctx * c->row, c->mem + run * c->ctx * c->row, used);
    }
    c->ctx = ctx;
}

/* Between the rows in use of one run and the next run nothing is worth its pages; beyond `touched` there are
 * none. */
static void discard_gaps(QsfKvCache *c, uint64_t touched) {
    size_t n = n_runs(c), run_bytes = c->ctx * c->row, used = c->n_past * c->row;
    for (size_t i = 0; i < n; i++) {
        uint64_t from = i * run_bytes + used, to = (i + 1) * run_bytes;
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
    uint64_t need = qsf_pages(n_runs(c) * (uint64_t)ctx * c->row), touched = c->bytes;
    if (ctx < c->n_past) {
        return qsf_err_set(err, QSF_E_CONTEXT, "the context cannot become %u tokens: %u are in it",
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
