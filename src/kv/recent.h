/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recent positions of caches whose K or V has a type of 2 bits (kvtypes.h): tiles in another type, which are
 * read instead. Between passes a state (recurrent.h) holds, for each head, the first tile in slot 0, and the
 * tile of the next position and the two before it, tile t in slot 1 + t % 3. During a pass they are in
 * scratch memory of one cache at a time, with the tiles that the pass adds: opened before the cache's first
 * store, read by its attention, and closed after that, which writes the state after the pass. A pass over one
 * position uses the state after it for that. */
#ifndef QSF_KV_RECENT_H
#define QSF_KV_RECENT_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "src/plan/layout.h"

typedef struct QsfKvCache QsfKvCache;

/* The recent positions of all caches. */
typedef struct QsfKvRecent {
    uint64_t at[QSF_MAX_LAYERS]; /* bytes before cache i in a state, if it has recent positions */
    bool on[QSF_MAX_LAYERS];     /* it has */
    /* The pass that is running. */
    uint8_t *stage;
    const uint8_t *old; /* states before and after the pass */
    uint8_t *next;
    uint32_t past, end;    /* its positions */
    bool single;           /* there is one: tiles are in `next`, at the slots of a state */
    uint32_t first, tiles; /* otherwise tile t > 0 is in slot 1 + t - first of `tiles` */
} QsfKvRecent;

/* The recent tiles that the queries of one tile see, for qk_attn. */
typedef struct QsfKvRecentView {
    qk_kv_slot list[QSF_KV_RECENT_TILES];
    uint32_t where[QSF_KV_RECENT_TILES];
    uint32_t n;
    uint32_t from, to; /* the positions that are read from the cache */
} QsfKvRecentView;

/* Finds where the caches' recent positions are in a state, for the cache's types. */
void qsf_kvrecent_place(QsfKvCache *c);

/* A pass over positions [past, past + n) begins: stage is scratch memory (QsfLayout.recent); old and next are
 * the parts of states with recent positions. */
void qsf_kvrecent_begin(QsfKvCache *c, uint32_t past, uint32_t n, uint8_t *stage, const uint8_t *old,
                        uint8_t *next);
/* Brings the recent positions of cache i to the scratch memory; by the thread that stores the first position
 * of the pass, before that. */
void qsf_kvrecent_open(const QsfKvCache *c, uint32_t i);
/* Stores a position of the pass there; as qsf_kvcache_store. */
void qsf_kvrecent_store(const QsfKvCache *c, uint32_t i, uint32_t pos, const float *k, const float *v);
/* Writes the state of cache i after the pass; skipped: nothing was stored, and the state is
 * the one before. */
void qsf_kvrecent_close(const QsfKvCache *c, uint32_t i, bool skipped);

/* Fills *v with the recent positions that queries of `tile` see. list: the tiles of the cache that are kept
 * (n_list entries); NULL: all. */
void qsf_kvrecent_view(const QsfKvCache *c, uint32_t tile, const qk_kv_slot *list, size_t n_list,
                       QsfKvRecentView *v);
/* Returns tile 0 of a head's K (which 0) or V in the scratch memory. */
const uint8_t *qsf_kvrecent_tiles(const QsfKvCache *c, uint32_t i, unsigned which, uint32_t head);

/* Returns a tile in a state (only what follows recurrent states) of n_past positions, or NULL
 * if it is not there. */
uint8_t *qsf_kvrecent_held(const QsfKvCache *c, uint32_t i, unsigned which, uint32_t head, uint32_t tile,
                           uint32_t n_past, uint8_t *state);

#endif
