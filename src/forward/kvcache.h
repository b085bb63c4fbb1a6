/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keys and values of all past positions, in the tiles of the KV operations (kernels/kv.h; f16, f32, q8).
 * Per layer and KV head the tiles of all positions lie together. Memory is charged whole, but touched only
 * as the context grows. Positions are physical: rotation happened before storing. */
#ifndef QSF_FORWARD_KVCACHE_H
#define QSF_FORWARD_KVCACHE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "src/base/ledger.h"
#include "src/model/hparams.h"

typedef struct QsfKvCache {
    const qk_kv_ops *ops;
    uint8_t *mem;   /* (n_layers, 2, n_kv_heads, tiles of ctx) */
    uint64_t bytes; /* mapped: enough for ctx */
    uint32_t n_layers, n_kv_heads, head_dim, ctx;
    size_t tile;     /* bytes of one tile */
    uint32_t n_past; /* positions that hold something */
    QsfLedger *ledger;
} QsfKvCache;

/* Charged to KV. QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_kvcache_init(QsfKvCache *c, const QsfHparams *hp, const qk_kv_ops *ops, uint32_t ctx,
                     QsfLedger *ledger, QsfErr *err);
void qsf_kvcache_free(QsfKvCache *c); /* zero-initialised is allowed */

/* Stores position pos < ctx of one layer; k and v are (n_kv_heads, head_dim). Different positions may be
 * stored by different threads at once (those of one tile share cache lines). Does not change n_past. */
void qsf_kvcache_store(QsfKvCache *c, uint32_t layer, uint32_t pos, const float *k, const float *v);

/* Tile 0 of a head. */
const uint8_t *qsf_kvcache_k(const QsfKvCache *c, uint32_t layer, uint32_t head);
const uint8_t *qsf_kvcache_v(const QsfKvCache *c, uint32_t layer, uint32_t head);

/* Forgets positions n.. ; n <= n_past. */
void qsf_kvcache_truncate(QsfKvCache *c, uint32_t n);

/* Room for ctx >= n_past positions from now on, in place; positions below n_past keep their contents, and
 * memory that they do not need goes back to the kernel. On an error (QSF_E_BUDGET, QSF_E_RUNTIME) the
 * positions are there all the same, and the cache has room for the smaller one of both contexts. */
int qsf_kvcache_resize(QsfKvCache *c, uint32_t ctx, QsfErr *err);

#endif
