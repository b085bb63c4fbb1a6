/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds the special tokens in a text, before any other processing: user-defined ones always, control and
 * unknown ones on request. Where tokens overlap, one of two rules decides:
 * - the longer one wins, then the lower id, then the leftmost (the result of searching the text for one token
 *   after another, longest first, as ggml-org/llama.cpp does);
 * - the leftmost one wins, then the longer (huggingface/tokenizers). With this rule a token may require that
 *   it is a word of its own, and white space is that of Unicode.
 * Takes linear time (the first rule n log n) whatever the lengths of the tokens. */
#ifndef QSF_TOKEN_SPECIAL_H
#define QSF_TOKEN_SPECIAL_H

#include "src/token/trie.h"

/* Tokens that are found in different parts of a text. */
typedef enum QsfSpecialKind {
    QSF_SPECIAL_CONTROL, /* control and unknown tokens: on request, in trusted text */
    QSF_SPECIAL_MARKUP,  /* user-defined ones that look like chat markup: in trusted text */
    QSF_SPECIAL_PLAIN,   /* other user-defined ones: everywhere */
    QSF_SPECIAL_KINDS
} QsfSpecialKind;

typedef struct QsfSpecials {
    const QsfVocab *vocab;
    QsfMatcher set[QSF_SPECIAL_KINDS];
    bool leftmost; /* the second rule */
} QsfSpecials;

/* A part of the text: a token, or (id -1) plain text. */
typedef struct QsfFragment {
    size_t off, len;
    int32_t id;
} QsfFragment;

/* Bytes that init allocates from the arena for up to n tokens with that many bytes together. */
uint64_t qsf_specials_bytes(uint32_t n, uint64_t text_bytes);
/* Whether a token is searched for: of type unknown, control or user-defined, with a text. */
bool qsf_specials_has(const QsfVocab *v, int32_t id);
/* text[0..n): the tokens, with their ids as values, in ascending order, and the texts to search for, which
 * must outlive s. Changes text. QSF_E_RUNTIME, QSF_E_BUDGET, QSF_E_INTERRUPTED. */
int qsf_specials_init(QsfSpecials *s, const QsfVocab *v, QsfTrieText *text, uint32_t n, bool leftmost,
                      QsfArena *arena, QsfErr *err);
/* The same with all tokens of the vocabulary and their own texts, by the first rule. */
int qsf_specials_init_all(QsfSpecials *s, const QsfVocab *v, QsfArena *arena, QsfErr *err);

/* Splits text into fragments, in order. White space stripped by a token belongs to no fragment. trusted:
 * NULL, or (len) bytes, 1 where the text is the template's own: then control tokens, and user-defined ones
 * that look like chat markup (<|...|>, [INST], <end_of_turn>, <think>, ...), are found only where all their
 * bytes are trusted. *out has *n elements. ledger: NULL, or what the memory is charged to
 * (QSF_MEM_TRANSCRIPT). QSF_E_RUNTIME without memory or beyond 4 GiB; QSF_E_BUDGET, QSF_E_INTERRUPTED. */
int qsf_specials_split(const QsfSpecials *s, const char *text, size_t len, bool control,
                       const uint8_t *trusted, QsfLedger *ledger, QsfFragment **out, size_t *n, QsfErr *err);
/* Frees the n fragments that a call with this ledger returned. */
void qsf_fragments_free(QsfFragment *f, size_t n, QsfLedger *ledger);

#endif
