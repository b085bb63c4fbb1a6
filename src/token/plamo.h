/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Vocabularies of PLaMo 2 and 3 (pfnet): of all ways to split a text into tokens the one with the highest sum
 * of rounded scores, found from the end of the text; characters without a token become bytes. Rules:
 * ggml-org/llama.cpp src/llama-vocab.cpp. */
#ifndef QSF_TOKEN_PLAMO_H
#define QSF_TOKEN_PLAMO_H

#include "src/token/unigram.h"

typedef struct QsfPlamo {
    const QsfVocab *vocab;
    QsfTrie trie;    /* tokens up to QSF_TOKEN_LONG bytes */
    QsfMatcher rest; /* longer ones */
    int32_t byte_id[256];
} QsfPlamo;

/* QSF_E_MODEL for a vocabulary in which a byte has no token; QSF_E_RUNTIME, QSF_E_BUDGET. */
int qsf_plamo_init(QsfPlamo *u, const QsfVocab *v, QsfArena *arena, QsfErr *err);
/* Appends the ids of text[0..len). QSF_E_RUNTIME without memory, or for a text beyond 256 MiB. */
int qsf_plamo_encode(const QsfPlamo *u, QsfLattice *lattice, const char *text, size_t len, QsfIds *out,
                     QsfErr *err);

#endif
