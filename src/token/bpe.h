/* SPDX-License-Identifier: GPL-3.0-or-later */
/* BPE: the pre-tokenizer splits text into pieces, the parts of a piece are merged by rank. The parts are
 * bytes written as characters (openai/gpt-2 src/encoder.py), or the characters themselves (SentencePiece
 * vocabularies of huggingface/tokenizers, Gemma 4), with a fallback to bytes for characters without a
 * token. */
#ifndef QSF_TOKEN_BPE_H
#define QSF_TOKEN_BPE_H

#include "src/token/merge.h"
#include "src/token/pretok.h"
#include "src/token/vocab.h"

/* A merge: (left token, right token) -> (rank, resulting token), 12 bytes in an open-addressed table that is
 * two thirds full. */
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

typedef struct QsfBpe {
    const QsfVocab *vocab;
    QsfRanks ranks;
    QsfPretok pretok;
    bool ignore_merges; /* a piece that is a token is used whole */
    bool chars;         /* parts are characters */
    bool trained;  /* what has no token is handled as by huggingface/tokenizers, before merging (see below) */
    bool mapped;   /* trained: bytes are written as characters in the text already */
    bool fallback; /* trained: byte tokens <0xXX> for text without a token */
    bool fuse_unknown; /* trained: a run of text without a token is one unknown token */
    /* with chars: id for a character that has no token and whose bytes have none, or -1 */
    int32_t unknown;
    int32_t byte_id[256];     /* token of each byte (with chars: <0xXX>), -1 if the vocabulary has none */
    int32_t fallback_id[256]; /* <0xXX> of each byte, -1 if the vocabulary has none */
} QsfBpe;

/* Sets vocab, chars, unknown and byte_id; the caller sets the other members. */
void qsf_bpe_init_bytes(QsfBpe *b, const QsfVocab *v, bool chars, int32_t unknown);

/* Appends the ids of a piece. */
int qsf_bpe_piece(const QsfBpe *b, QsfMerger *merger, const char *piece, size_t len, QsfIds *out,
                  QsfErr *err);
/* Appends the ids of text[0..len), split by b->pretok. Bytes without a token are skipped, as
 * in the reference. */
int qsf_bpe_encode(const QsfBpe *b, QsfMerger *merger, QsfRegexScratch *scratch, const char *text, size_t len,
                   QsfIds *out, QsfErr *err);

#endif
