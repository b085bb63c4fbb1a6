/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the tiles of KV caches are once some were evicted: for each cache a list of its tiles by ascending
 * position and a stack of free slots. Until the first eviction tile t is in slot t. Nothing moves when a tile
 * is evicted; its slot is used again. A cache that is a ring has no list. One thread at a time. */
#ifndef QSF_KV_LIST_H
#define QSF_KV_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "src/base/ledger.h"
#include "src/model/hparams.h"
#include "src/plan/layout.h"

typedef struct QsfKvLists {
    uint8_t *mem; /* NULL = no lists */
    uint64_t bytes;
    uint32_t n_caches, cap;     /* tiles of each cache */
    qk_kv_slot *entry;          /* (n_caches, cap) */
    uint32_t *spare;            /* (n_caches, cap) free slots: the first cap - n */
    uint32_t *moved;            /* (n_caches, cap) by slot: how many tiles further the keys were rotated
                                   (forward/kv_room.c) */
    uint8_t *drop;              /* (cap) */
    uint64_t *mass;             /* (n_caches, cap * 16) weights by slot and position; NULL = not wanted */
    uint64_t *saved_mass;       /* (QSF_KV_WEIGHT_COPIES, n_caches, cap * 16) by entry: the weights
                                   at earlier lengths */
    uint64_t *worker_mass;      /* (threads, cap * 16) of the step that is running, zeroed after it */
    uint32_t threads;           /* of worker_mass */
    uint32_t n[QSF_MAX_LAYERS]; /* entries */
    bool on;                    /* something was evicted */
    uint32_t evicted_at;        /* positions that were there when some were last evicted */
    uint32_t n_saved;           /* copies that hold something, of ascending lengths */
    uint32_t saved_at[QSF_KV_WEIGHT_COPIES]; /* positions that were there */
    uint32_t weighed_end;                    /* one past the last query in the weights; UINT32_MAX = they hold
                                                part of a failed pass */
    QsfLedger *ledger;
} QsfKvLists;

/* Maps lists, charged to KV; l must be zero or have been freed. QSF_E_BUDGET, QSF_E_RUNTIME. */
int qsf_kvlists_init(QsfKvLists *l, uint32_t n_caches, uint32_t ctx, uint32_t threads, QsfLedger *ledger,
                     QsfErr *err);
void qsf_kvlists_free(QsfKvLists *l); /* zero-initialised is allowed */
/* Replaces l by lists of these sizes with the same entries, all of which are in slots below the new size. On
 * failure (QSF_E_BUDGET, QSF_E_RUNTIME) l is as before. */
int qsf_kvlists_resize(QsfKvLists *l, uint32_t ctx, uint32_t threads, QsfErr *err);

static inline qk_kv_slot *qsf_kvlist(const QsfKvLists *l, uint32_t i) {
    return l->entry + (size_t)i * l->cap;
}
static inline uint32_t *qsf_kvlist_moved(const QsfKvLists *l, uint32_t i) {
    return l->moved + (size_t)i * l->cap;
}
static inline uint64_t *qsf_kvlist_mass(const QsfKvLists *l, uint32_t i) {
    return l->mass + (size_t)i * l->cap * QK_KV_TILE;
}

/* Returns the weights of cache i in a copy, by entry. */
static inline uint64_t *qsf_kvlist_saved(const QsfKvLists *l, uint32_t copy, uint32_t i) {
    return l->saved_mass + ((size_t)copy * l->n_caches + i) * l->cap * QK_KV_TILE;
}

/* The first eviction: lists of the tiles of n_past positions, each in its own slot. */
void qsf_kvlists_start(QsfKvLists *l, uint32_t n_past);
/* Gives cache i slots for positions up to `end`, of which there must be enough; the list must
 * not go beyond n_past. */
void qsf_kvlist_extend(QsfKvLists *l, uint32_t i, uint32_t end);
/* Removes the tiles after n positions, and makes later positions of the last one visible. */
void qsf_kvlist_truncate(QsfKvLists *l, uint32_t i, uint32_t n);
/* Removes the entries whose l->drop is set. Returns their number. */
uint32_t qsf_kvlist_remove(QsfKvLists *l, uint32_t i);
/* Sorts the free slots of cache i: the lowest is used next. l->drop[slot] is 1 for used ones after that. */
void qsf_kvlist_sort_spare(QsfKvLists *l, uint32_t i);
/* Returns the slot of a tile, which must be in the list; the last tiles are found first. */
uint32_t qsf_kvlist_slot(const QsfKvLists *l, uint32_t i, uint32_t tile);
/* A pass over n positions after `past` of them added to the weights, or failed and may have. */
static inline void qsf_kvlists_weighed_pass(QsfKvLists *l, uint32_t past, uint32_t n, bool ok) {
    l->weighed_end = ok && l->weighed_end <= past ? past + n : UINT32_MAX;
}
/* Do the weights hold queries after n positions? */
static inline bool qsf_kvlists_ahead(const QsfKvLists *l, uint32_t n) {
    return l->mass != NULL && l->weighed_end > n;
}
/* Saves the weights, which must be those of n_past positions; the oldest copy makes room. An eviction must
 * drop all copies: n_saved = 0. */
void qsf_kvlists_save_weights(QsfKvLists *l, uint32_t n_past);
/* Returns the largest length up to n at which the weights are known; n itself if there are none. */
uint32_t qsf_kvlists_weighed(const QsfKvLists *l, uint32_t n);
/* Makes the weights those of n positions, a result of qsf_kvlists_weighed, and drops later copies. The lists
 * must be as they are after qsf_kvlist_truncate to n. */
void qsf_kvlists_restore_weights(QsfKvLists *l, uint32_t n);
/* Before the first eviction: clears the weights of tiles after n positions. */
void qsf_kvlists_forget(QsfKvLists *l, uint32_t n);
/* Adds the weights that the threads gathered for cache i. */
void qsf_kvlist_gather(QsfKvLists *l, uint32_t i, uint32_t n_past);

#endif
