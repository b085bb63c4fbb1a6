/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Keys and values of past positions, in the tiles of the KV operations (kernels/kv.h), of a type for K and
 * one for V. The tiles of one cache and KV head are contiguous. The memory of a full context is mapped; it is
 * charged for the positions that qsf_kvcache_reserve names, and touched only as the context grows. Positions
 * are physical: rotation is applied before storing.
 * Positions may be evicted, if there are lists (kv/list.h): the memory then holds ctx positions at a time,
 * all of them charged, and n_past may be larger. A truncation to fewer positions than there were at the last
 * eviction keeps nothing: all of it must be evaluated again.
 * A cache of steps with a window keeps its last positions in a ring. A conversation can then be truncated
 * only as far as the window before its new end is still there. */
#ifndef QSF_KV_CACHE_H
#define QSF_KV_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "src/base/space.h"
#include "src/kv/list.h"
#include "src/kv/recent.h"
#include "src/model/hparams.h"
#include "src/model/program.h"
#include "src/plan/evict.h"
#include "src/plan/kvtypes.h"

struct QsfKvCache {
    const qk_table *table;
    QsfKvTypes types;
    uint8_t *mem;      /* per cache the tiles of ctx of each head's K, then of each head's V unless V is K */
    QsfPartial map;    /* enough for ctx */
    uint32_t reserved; /* positions that are charged; at least n_past */
    const QsfKvSpec *spec; /* (n) must outlive the cache */
    uint32_t n;            /* number of caches */
    uint32_t ctx;
    uint32_t n_past; /* positions that hold something */
    bool converted;  /* some were stored with other types first: an evaluation would give other bits */
    uint64_t at[QSF_MAX_LAYERS];      /* bytes before each cache, for ctx */
    uint32_t tile[QSF_MAX_LAYERS][2]; /* bytes of a tile of K and of V */
    uint32_t lost[QSF_MAX_LAYERS];    /* positions before this one may be overwritten */
    QsfKvLists lists;
    QsfKvRecent recent;
    uint8_t *carried; /* the recent positions in states, while their memory changes (malloc'ed); NULL */
    QsfLedger *ledger;
};

/* Maps n <= QSF_MAX_LAYERS empty caches, charged to KV for all positions. QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_kvcache_init(QsfKvCache *c, const QsfKvSpec *spec, uint32_t n, const qk_table *table,
                     QsfKvTypes types, uint32_t ctx, QsfLedger *ledger, QsfErr *err);
void qsf_kvcache_free(QsfKvCache *c); /* zero-initialised is allowed */

/* Charges KV for positions [0, n), n_past <= n <= ctx; fewer than before: what they do not touch is returned
 * to the kernel. Also while the ledger is frozen. QSF_E_BUDGET: nothing has changed; fewer never fails. */
int qsf_kvcache_reserve(QsfKvCache *c, uint32_t n, QsfErr *err);

/* Stores position pos of cache i, also as a recent one (kv/recent.h), pos < reserved or, with
 * lists, announced by qsf_kvcache_will_store; k and v are (heads, dim); v is not read where V is
 * K. Several threads may store different positions concurrently (those of one tile share cache
 * lines). Does not change n_past. */
void qsf_kvcache_store(const QsfKvCache *c, uint32_t i, uint32_t pos, const float *k, const float *v);

/* Returns how cache i stores K (which 0) or V (1), and the operations of that type. */
qk_kv qsf_kvcache_type(const QsfKvCache *c, uint32_t i, unsigned which);
const qk_kv_ops *qsf_kvcache_ops(const QsfKvCache *c, uint32_t i, unsigned which);

/* Returns the ring of cache i for qk_attn: 0 if it has all positions. */
uint32_t qsf_kvcache_ring(const QsfKvCache *c, uint32_t i);
/* To be called before positions [n_past, n_past + n) are stored, n <= QSF_KV_SLACK where a cache is a ring,
 * and n <= qsf_kvcache_room where positions were evicted. */
void qsf_kvcache_will_store(QsfKvCache *c, uint32_t n);

/* --- eviction --- */

/* Creates lists, with weights of positions if threads > 0, or changes existing ones; QSF_E_BUDGET and
 * QSF_E_RUNTIME change nothing. */
int qsf_kvcache_lists(QsfKvCache *c, uint32_t threads, QsfErr *err);
/* Returns the tiles in use of the fullest cache that is not a ring; 0 if all are. */
uint32_t qsf_kvcache_tiles(const QsfKvCache *c);
/* Returns how many positions can be stored when no more than `tiles` tiles of a cache may be used. */
uint32_t qsf_kvcache_room(const QsfKvCache *c, uint32_t tiles);
/* Evicts tiles from every cache that is not a ring, until `target` are left. Returns the number of tiles
 * evicted from the first cache. */
uint32_t qsf_kvcache_evict(QsfKvCache *c, const QsfEvict *e, uint32_t target);
/* Returns the memory of free slots to the kernel; the lowest of them are used first from now on. The
 * positions stay charged. */
void qsf_kvcache_discard(QsfKvCache *c);
/* Returns the list of cache i for qk_attn, *n entries; NULL if every position is at its place. */
const qk_kv_slot *qsf_kvcache_list(const QsfKvCache *c, uint32_t i, size_t *n);

/* Return tile 0 of a head; of V that is K, NULL. */
const uint8_t *qsf_kvcache_k(const QsfKvCache *c, uint32_t i, uint32_t head);
const uint8_t *qsf_kvcache_v(const QsfKvCache *c, uint32_t i, uint32_t head);

/* Return tile `tile` (positions 16 * tile and the next 15, where a ring has them) of a head, which: 0 = K,
 * 1 = V, and its bytes; for snapshots. There is no V where V is K. */
uint8_t *qsf_kvcache_tile(const QsfKvCache *c, uint32_t i, unsigned which, uint32_t head, uint32_t tile);
size_t qsf_kvcache_tile_bytes(const QsfKvCache *c, uint32_t i, unsigned which);

/* Returns how many of the first n <= n_past positions a truncation can keep: n, or 0 if the window before n
 * is no longer there. */
uint32_t qsf_kvcache_keeps(const QsfKvCache *c, uint32_t n);
/* Removes positions n and later; n is a result of qsf_kvcache_keeps. */
void qsf_kvcache_truncate(QsfKvCache *c, uint32_t n);

/* Returns how many positions the context must have at least. */
uint32_t qsf_kvcache_used(const QsfKvCache *c);
/* Changes the cache in place to ctx >= qsf_kvcache_used positions of these types. Stored positions keep their
 * contents, as precisely as their new type can, and unused memory is returned to the kernel; as many
 * positions as before are charged. Only the tile that is being converted is in memory twice, and recent ones:
 * c->carried, of recent positions with the old types, becomes that with the new types. After an error
 * (QSF_E_BUDGET, QSF_E_RUNTIME) the positions are there, and the cache has the smaller of both sizes and the
 * types with fewer bits. */
int qsf_kvcache_resize(QsfKvCache *c, uint32_t ctx, QsfKvTypes types, QsfErr *err);

#endif
