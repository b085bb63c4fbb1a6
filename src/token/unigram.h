/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Unigram vocabularies (google/sentencepiece src/unigram_model.cc; T5): of all ways to split a text into
 * tokens the one with the highest sum of scores. The input is normalized, with spaces as U+2581. */
#ifndef QSF_TOKEN_UNIGRAM_H
#define QSF_TOKEN_UNIGRAM_H

#include "src/token/trie.h"

typedef struct QsfUnigram {
    const QsfVocab *vocab;
    QsfTrie trie;    /* tokens up to QSF_TOKEN_LONG bytes */
    QsfMatcher rest; /* longer ones */
    double unknown_score;
    int32_t unknown;      /* id for characters without a token, or -1 */
    int32_t byte_id[256]; /* token of each byte, with fallback */
    bool fallback;        /* every byte has a token: characters without a token become bytes */
    bool trained; /* as huggingface/tokenizers: all scores count, also those of user-defined tokens, and a run
                     of characters without a token is one, as bytes if fallback is set and all have a token */
    bool by_word; /* no token continues after a space inside it: words may be encoded separately */
} QsfUnigram;

/* The best path to one position of a text. */
typedef struct QsfBest {
    double score;
    uint32_t from; /* where its last token begins */
    int32_t id;    /* -1: a character without a token */
} QsfBest;

/* Scratch memory (heap.h), reused. Zero-initialise. */
typedef struct QsfLattice {
    QsfLedger *ledger; /* NULL, or charged with the memory (QSF_MEM_TRANSCRIPT) */
    QsfBest *best;     /* (cap) */
    size_t cap;
    int32_t *found; /* (cap_found) the longest of the long tokens at each place, as an index; unused
                       without such */
    size_t cap_found;
} QsfLattice;
/* Frees the buffers and releases their charge; a zeroed one is allowed. */
void qsf_lattice_free(QsfLattice *l);
/* Makes room for n positions. QSF_E_RUNTIME without memory, QSF_E_BUDGET. */
int qsf_lattice_reserve(QsfLattice *l, size_t n, QsfErr *err);
/* Finds the long tokens of a text. QSF_E_RUNTIME without memory, QSF_E_BUDGET, QSF_E_INTERRUPTED. */
int qsf_lattice_find(QsfLattice *l, const QsfMatcher *rest, const char *text, size_t len, QsfErr *err);

/* unknown: the id of the unknown token, or -1. u->trained and, with it, u->fallback are set before.
 * QSF_E_RUNTIME, QSF_E_BUDGET. */
int qsf_unigram_init(QsfUnigram *u, const QsfVocab *v, int32_t unknown, QsfArena *arena, QsfErr *err);
/* Appends the ids of text[0..len). A run of characters without a token gives one unknown token. QSF_E_RUNTIME
 * without memory, or for a word beyond 256 MiB. */
int qsf_unigram_encode(const QsfUnigram *u, QsfLattice *lattice, const char *text, size_t len, QsfIds *out,
                       QsfErr *err);

#endif
