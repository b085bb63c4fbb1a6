/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pre-tokenizers of byte-level BPE: text is split into pieces that merges never cross. A pre-tokenizer is a
 * list of regular expressions; each one splits the pieces produced by the previous one: a match becomes a
 * piece, and so does the text between two matches. */
#ifndef QSF_TOKEN_PRETOK_H
#define QSF_TOKEN_PRETOK_H

#include "src/token/regex.h"

/* Flags of a value of tokenizer.ggml.pre besides its expressions. */
enum {
    QSF_PRETOK_CLEAN = 1,         /* detokenizing drops spaces before punctuation and contractions */
    QSF_PRETOK_IGNORE_MERGES = 2, /* a piece that is a token is used whole, regardless of the merges */
    QSF_PRETOK_BOS = 4,           /* BOS is added unless the file disables it */
    QSF_PRETOK_CHARS = 8,  /* tokens are written as text, not byte by byte: merging begins with characters */
    QSF_PRETOK_ESCAPE = 16 /* spaces become U+2581 before splitting */
};

typedef struct QsfPretokSpec {
    const char *name;          /* value of tokenizer.ggml.pre */
    const char *const *passes; /* expressions, terminated by NULL */
    unsigned flags;
} QsfPretokSpec;

#define QSF_PRETOK_PASSES  8
#define QSF_PRETOK_DEFAULT "default"

/* Row of the table, or NULL for an unknown name. */
const QsfPretokSpec *qsf_pretok_spec(const char *name, size_t len);
/* Row i of the table, NULL after the last one. */
const QsfPretokSpec *qsf_pretok_spec_at(size_t i);

/* Compiled expressions; immutable, any thread. */
typedef struct QsfPretok {
    QsfRegex *re[QSF_PRETOK_PASSES];
    unsigned n;
    size_t bytes; /* bytes used by the compiled expressions */
} QsfPretok;

/* QSF_E_RUNTIME. Close it in either case. */
int qsf_pretok_open(QsfPretok *p, const QsfPretokSpec *spec, QsfErr *err);
/* Frees the expressions. */
void qsf_pretok_close(QsfPretok *p);

/* Receives the pieces in order; a result other than QSF_OK stops the splitting. */
typedef int (*QsfPieceFn)(void *ctx, const char *piece, size_t len, QsfErr *err);

/* Splits text[0..len). The concatenated pieces are the text; none is empty. Bytes that are not UTF-8 form
 * separate pieces. Returns the result of fn. */
int qsf_pretok_split(const QsfPretok *p, QsfRegexScratch *scratch, const char *text, size_t len,
                     QsfPieceFn fn, void *ctx, QsfErr *err);

#endif
