/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Unigram vocabularies (google/sentencepiece src/unigram_model.cc; T5): of all ways to write a text as tokens the
 * one with the highest sum of scores. Text comes normalized, spaces as U+2581. */
#ifndef QSF_TEXT_UNIGRAM_H
#define QSF_TEXT_UNIGRAM_H

#include "src/text/trie.h"

typedef struct QsfUnigram {
    const QsfVocab *vocab;
    QsfTrie trie;
    float unknown_score;
    int32_t unknown;      /* id of what no token writes, or -1 */
    int32_t byte_id[256]; /* token of each byte, where fallback */
    bool fallback;        /* every byte has a token: what no token writes becomes its bytes */
    bool by_word;         /* no token goes on after a space inside it: words may be taken one by one */
} QsfUnigram;

/* The best way to one place of a text. */
typedef struct QsfBest {
    double score;
    uint32_t from; /* where its last token begins */
    int32_t id;    /* -1: a character without a token */
} QsfBest;

/* Working memory on the libc heap, reused. Zero-initialise; free(best). */
typedef struct QsfLattice {
    QsfBest *best; /* (cap) */
    size_t cap;
} QsfLattice;

/* unknown: the id of the unknown token, or -1. QSF_E_RUNTIME, QSF_E_BUDGET. */
int qsf_unigram_init(QsfUnigram *u, const QsfVocab *v, int32_t unknown, QsfArena *arena, QsfErr *err);
/* Appends the ids of text[0..len). A run of characters without a token gives one unknown token. QSF_E_RUNTIME
 * without memory, or for a word beyond 256 MiB. */
int qsf_unigram_encode(const QsfUnigram *u, QsfLattice *lattice, const char *text, size_t len, QsfIds *out,
                       QsfErr *err);

#endif
