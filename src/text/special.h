/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds the special tokens that a text spells, before anything else looks at it: user-defined ones
 * always, control and unknown ones on request. Longer tokens win over shorter ones wherever they
 * overlap, then lower ids, then the leftmost (what comes out of searching the text for one token after
 * another, longest first, as ggml-org/llama.cpp does). */
#ifndef QSF_TEXT_SPECIAL_H
#define QSF_TEXT_SPECIAL_H

#include "src/text/vocab.h"

typedef struct QsfSpecials {
    const QsfVocab *vocab;
    uint32_t *id;     /* (n) ids in the order of their texts */
    int32_t *shorter; /* (n) index of the longest special token that this one begins with, -1 = none */
    uint32_t n;
    uint32_t n_user;     /* of them user-defined */
    uint32_t first[257]; /* texts that begin with byte b are at [first[b], first[b+1]) */
} QsfSpecials;

/* A stretch of the text: a token, or (id -1) plain text. */
typedef struct QsfFragment {
    size_t off, len;
    int32_t id;
} QsfFragment;

/* Bytes that init takes from the arena for up to n tokens. */
uint64_t qsf_specials_bytes(uint32_t n);
/* Collects the tokens of type unknown, control and user-defined. */
int qsf_specials_init(QsfSpecials *s, const QsfVocab *v, QsfArena *arena, QsfErr *err);

/* Cuts text into fragments, in order. White space that a token strips belongs to no fragment.
 * trusted: NULL, or (len) bytes, 1 where the text is the template's own: then control tokens, and
 * user-defined ones that look like markup of a chat (<|...|>, [INST], <end_of_turn>, <think>, ...), are found only
 * where all their bytes are trusted. *out holds *n, free() it. QSF_E_RUNTIME without memory. */
int qsf_specials_split_marked(const QsfSpecials *s, const char *text, size_t len, bool control,
                              const uint8_t *trusted, QsfFragment **out, size_t *n, QsfErr *err);
/* With all of it trusted. */
int qsf_specials_split(const QsfSpecials *s, const char *text, size_t len, bool control, QsfFragment **out,
                       size_t *n, QsfErr *err);

#endif
