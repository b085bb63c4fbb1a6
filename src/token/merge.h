/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The merge loop of SentencePiece and byte-level BPE: of all adjacent pairs that may be merged, merge the one
 * with the lowest rank, the leftmost on a tie, until there are none. O(n log n). */
#ifndef QSF_TOKEN_MERGE_H
#define QSF_TOKEN_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/ledger.h"

/* A part of the text being merged. A symbol merged into its left neighbour has len 0. */
typedef struct QsfSymbol {
    uint32_t off, len;  /* bytes of the text */
    int32_t prev, next; /* adjacent live symbols, -1 at the ends */
    int32_t id;         /* its token, or -1 */
} QsfSymbol;

/* Whether left and right may be merged. If so, *rank orders the merges and *id is the resulting token. */
typedef bool (*QsfPairFn)(const void *ctx, const QsfSymbol *left, const QsfSymbol *right, uint32_t *rank,
                          int32_t *id);

typedef struct QsfPair {
    uint32_t rank;
    uint32_t left; /* index of the left symbol */
    uint32_t len;  /* of both together: outdated if the symbols have grown since */
    int32_t id;
} QsfPair;

/* Scratch memory (heap.h), reused from piece to piece. Zero-initialise. */
typedef struct QsfMerger {
    QsfLedger *ledger; /* NULL, or charged with the memory (QSF_MEM_TRANSCRIPT) */
    QsfSymbol *syms;   /* (n_syms) */
    size_t n_syms, cap_syms;
    QsfPair *heap; /* (n_heap), smallest first */
    size_t n_heap, cap_heap;
    QsfPair *first; /* (n_first) sorted, of a long text; used up to at_first */
    size_t n_first, cap_first, at_first;
} QsfMerger;

/* Frees the buffers and releases their charge; a zeroed one is allowed. */
void qsf_merger_free(QsfMerger *m);
/* Removes all symbols. */
void qsf_merger_clear(QsfMerger *m);
/* Adds the symbol of the next len bytes (> 0). QSF_E_RUNTIME without memory or beyond 1 GiB, QSF_E_BUDGET. */
int qsf_merger_add(QsfMerger *m, size_t len, int32_t id, QsfErr *err);
/* Merges. The result is the list from symbol 0, linked by `next`. QSF_E_RUNTIME without
 * memory, QSF_E_BUDGET. */
int qsf_merger_run(QsfMerger *m, QsfPairFn pair, const void *ctx, QsfErr *err);

#endif
