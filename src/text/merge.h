/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The loop that SentencePiece and byte-level BPE share: of all neighbours that may be joined, join
 * the pair with the lowest rank, the leftmost on a tie, until none is left. O(n log n). */
#ifndef QSF_TEXT_MERGE_H
#define QSF_TEXT_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"

/* A part of the text being merged. A symbol that was swallowed by its left neighbour has len 0. */
typedef struct QsfSymbol {
    uint32_t off, len;  /* bytes of the text */
    int32_t prev, next; /* living neighbours, -1 at the ends */
    int32_t id;         /* its token, -1 when it is none */
} QsfSymbol;

/* May left and right be joined? Then *rank orders the joins and *id is the token they make. */
typedef bool (*QsfPairFn)(const void *ctx, const QsfSymbol *left, const QsfSymbol *right, uint32_t *rank,
                          int32_t *id);

typedef struct QsfPair {
    uint32_t rank;
    uint32_t left; /* index of the left symbol */
    uint32_t len;  /* of both together: outdated when the symbols have grown since */
    int32_t id;
} QsfPair;

/* Working memory on the libc heap, reused from piece to piece. Zero-initialise. */
typedef struct QsfMerger {
    QsfSymbol *syms; /* (n_syms) */
    size_t n_syms, cap_syms;
    QsfPair *heap; /* (n_heap), smallest first */
    size_t n_heap, cap_heap;
    QsfPair *first; /* (n_first) sorted, of a long text; taken up to at_first */
    size_t n_first, cap_first, at_first;
} QsfMerger;

void qsf_merger_free(QsfMerger *m);
/* Forgets the symbols. */
void qsf_merger_clear(QsfMerger *m);
/* Adds the symbol of the next len bytes (> 0). QSF_E_RUNTIME without memory or beyond 1 GiB. */
int qsf_merger_add(QsfMerger *m, size_t len, int32_t id, QsfErr *err);
/* Merges. What is left is read from symbol 0 on by `next`. QSF_E_RUNTIME without memory. */
int qsf_merger_run(QsfMerger *m, QsfPairFn pair, const void *ctx, QsfErr *err);

#endif
