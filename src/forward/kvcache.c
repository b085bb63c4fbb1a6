/* SPDX-License-Identifier: GPL-3.0-or-later */
/* K/V rows by layer, head and position. */
#include "src/forward/kvcache.h"

#include <string.h>

#include "src/stream/layout.h"

int qsf_kvcache_init(QsfKvCache *c, const QsfHparams *hp, const qk_kv_ops *ops, uint32_t ctx,
                     QsfLedger *ledger, QsfErr *err) {
    void *mem;
    memset(c, 0, sizeof *c);
    uint64_t bytes = qsf_kv_bytes(hp, ops, ctx);
    int rc = qsf_mem_map(ledger, QSF_MEM_KV, bytes, "KV cache", &mem, err);
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
