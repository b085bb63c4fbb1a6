/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds the special tokens in a text, before any other processing: user-defined ones always, control and
 * unknown ones on request. Where tokens overlap, the longer one wins, then the lower id, then the leftmost
 * (the result of searching the text for one token after another, longest first, as ggml-org/llama.cpp
 * does). */
#ifndef QSF_TEXT_SPECIAL_H
#define QSF_TEXT_SPECIAL_H

#include "src/text/vocab.h"

typedef struct QsfSpecials {
    const QsfVocab *vocab;
    uint32_t *id;     /* (n) ids in the order of their texts */
    int32_t *shorter; /* (n) index of the longest special token that is a prefix of this one, -1 = none */
    uint32_t n;
    uint32_t n_user;     /* number of user-defined ones */
    uint32_t first[257]; /* texts that begin with byte b are at [first[b], first[b+1]) */
} QsfSpecials;

/* A part of the text: a token, or (id -1) plain text. */
typedef struct QsfFragment {
    size_t off, len;
    int32_t id;
} QsfFragment;

/* Bytes that init allocates from the arena for up to n tokens. */
uint64_t qsf_specials_bytes(uint32_t n);
/* Collects the tokens of type unknown, control and user-defined. */
int qsf_specials_init(QsfSpecials *s, const QsfVocab *v, QsfArena *arena, QsfErr *err);

/* Splits text into fragments, in order. White space stripped by a token belongs to no fragment. trusted:
 * NULL, or (len) bytes, 1 where the text is the template's own: then control tokens, and user-defined ones
 * that look like chat markup (<|...|>, [INST], <end_of_turn>, <think>, ...), are found only where all their
 * bytes are trusted. *out has *n elements, free() it. QSF_E_RUNTIME without memory. */
int qsf_specials_split_marked(const QsfSpecials *s, const char *text, size_t len, bool control,
                              const uint8_t *trusted, QsfFragment **out, size_t *n, QsfErr *err);
/* With all text trusted. */
int qsf_specials_split(const QsfSpecials *s, const char *text, size_t len, bool control, QsfFragment **out,
                       size_t *n, QsfErr *err);

#endif
