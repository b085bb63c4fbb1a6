/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SentencePiece's normalizer (google/sentencepiece src/normalizer.cc): a table of replacements, compiled into
 * the model, and rules for white space. Spaces become U+2581. */
#ifndef QSF_TOKEN_CHARSMAP_H
#define QSF_TOKEN_CHARSMAP_H

#include <stdbool.h>

#include "src/base/arena.h"
#include "src/base/strbuf.h"
#include "src/file/source.h"

typedef struct QsfCharsmap {
    const unsigned char *units; /* (n_units) little-endian 32-bit words of a double array (darts-clone) */
    uint32_t n_units;
    const char *text; /* (text_len) replacements, each ended by a NUL */
    uint32_t text_len;
    bool remove_extra; /* removes white space at both ends, and reduces it to one space between words */
} QsfCharsmap;

/* Bytes that qsf_charsmap_load allocates from the arena. QSF_E_MODEL names a key that is too long or has a
 * wrong type. */
int qsf_charsmap_bytes(const QsfSource *src, uint64_t *bytes, QsfErr *err);
/* Reads tokenizer.ggml.precompiled_charsmap and remove_extra_whitespaces; both may be absent. QSF_E_MODEL if
 * the sizes in the table are inconsistent. */
int qsf_charsmap_load(QsfCharsmap *c, const QsfSource *src, QsfArena *arena, QsfErr *err);
/* Whether it changes anything except spaces to U+2581. */
bool qsf_charsmap_active(const QsfCharsmap *c);
/* The replacement of the shortest prefix of s[0..len) that the table has, and its length; NULL if there is
 * none. This is how huggingface/tokenizers looks things up, with a character or a grapheme cluster as s. */
const char *qsf_charsmap_first(const QsfCharsmap *c, const char *s, size_t len, size_t *out_len);
/* The ends of a text at which extra white space is removed; between a text and a user-defined
 * token one space stays. */
enum { QSF_EDGE_LEFT = 1, QSF_EDGE_RIGHT = 2 };
/* Appends the normalized form of text[0..len), with a leading space if prefix is set. Bytes that are not
 * UTF-8 are not changed. Check out afterwards, and whether the thread is to stop (interrupt.h):
 * then it is a part of the text. */
void qsf_charsmap_apply(const QsfCharsmap *c, const char *text, size_t len, bool prefix, unsigned edges,
                        QsfStrbuf *out);

#endif
