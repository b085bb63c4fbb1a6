/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Merges of byte-level BPE: (left token, right token) -> (rank, resulting token), 12 bytes each in an
 * open-addressed table that is two thirds full. */
#ifndef QSF_TOKEN_RANKS_H
#define QSF_TOKEN_RANKS_H

#include "src/token/vocab.h"

typedef struct QsfRank {
    uint32_t a;    /* left id, and the low 11 bits of the merged id above it */
    uint32_t b;    /* right id, and the high 10 bits of the merged id above it */
    uint32_t rank; /* UINT32_MAX = empty */
} QsfRank;

typedef struct QsfRanks {
    QsfRank *slot; /* (n_slots) */
    uint32_t n_slots, n;
    uint32_t n_lost; /* merges whose parts or result are not tokens */
    bool trained;    /* as huggingface/tokenizers: of merges listed twice the last one counts; set
                        it before loading */
    uint64_t key;    /* secret of this process: a crafted file cannot make the pairs collide */
} QsfRanks;

/* Number of merges in the file. QSF_E_MODEL if the array is missing, too long or not of strings. */
int qsf_ranks_count(const QsfSource *src, uint32_t *n, QsfErr *err);
/* Upper bound of the memory that qsf_ranks_load takes from the arena for n merges. */
uint64_t qsf_ranks_bytes(uint32_t n);
/* Reads tokenizer.ggml.merges ("left right"). A merge whose parts or result are not tokens (these are
 * counted), or whose result may not be made from plain text, can never apply and is skipped. */
int qsf_ranks_load(QsfRanks *r, const QsfSource *src, const QsfVocab *v, uint32_t n, QsfArena *arena,
                   QsfErr *err);
/* False if the two do not merge. */
bool qsf_ranks_find(const QsfRanks *r, int32_t left, int32_t right, uint32_t *rank, int32_t *merged);

#endif
