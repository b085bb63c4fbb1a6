/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recent positions (kv/recent.h) while the types of a cache change: what is read from a state when a tile of
 * 2 bits becomes one of more, and what a state holds with the new types. */
#ifndef QSF_KV_CARRY_H
#define QSF_KV_CARRY_H

#include "src/kv/cache.h"

/* The recent tiles of one run: where they are in the cache, and what is read instead. */
typedef struct QsfKvCarried {
    const qk_kv_ops *ops;
    uint32_t n, slot[QSF_KV_RECENT_TILES];
    const uint8_t *tile[QSF_KV_RECENT_TILES];
} QsfKvCarried;

/* Makes what a state holds of the positions of c when it has these types, from c->carried and the cache: *out
 * is malloc'ed, NULL if caches of these types have no recent positions, or if c is empty. QSF_E_RUNTIME. */
int qsf_kvcarry_make(const QsfKvCache *c, QsfKvTypes types, uint8_t **out, QsfErr *err);
/* Fills in the source of a head's K (which 0) or V of cache i, whose type was that of `was`, where
 * was->carried is more precise than the tiles. */
void qsf_kvcarry_find(const QsfKvCache *was, uint32_t i, unsigned which, uint32_t head, QsfKvCarried *out);

#endif
