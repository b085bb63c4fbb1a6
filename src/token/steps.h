/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The normalizer and the pre-tokenizer of a tokenizer.json, as lists of steps that are carried out as
 * huggingface/tokenizers does. The metadata (vocab/keys.h, QSF_KEY_STEPS) holds them as strings: the name of
 * a step and its arguments. Immutable after opening: any thread, each with its own scratch. */
#ifndef QSF_TOKEN_STEPS_H
#define QSF_TOKEN_STEPS_H

#include "src/base/ledger.h"
#include "src/base/strbuf.h"
#include "src/base/unicode.h"
#include "src/token/charsmap.h"
#include "src/token/pretok.h"

#define QSF_TEXT_STEPS_MAX 32

typedef enum QsfTextStepKind {
    /* of the normalizer */
    QSF_TEXT_STEP_FORM,         /* a Unicode normal form */
    QSF_TEXT_STEP_REPLACE,      /* all matches of an expression */
    QSF_TEXT_STEP_REPLACE_TEXT, /* all places of a text */
    QSF_TEXT_STEP_PREPEND,      /* a text before what is not empty */
    QSF_TEXT_STEP_STRIP,        /* white space at the ends */
    QSF_TEXT_STEP_CHARSMAP,     /* the table of a SentencePiece model */
    QSF_TEXT_STEP_NMT,          /* control characters dropped, other white space as spaces */
    /* of the pre-tokenizer */
    QSF_TEXT_STEP_SPLIT,  /* by an expression */
    QSF_TEXT_STEP_PREFIX, /* a text before what does not begin with it */
    QSF_TEXT_STEP_SPACES, /* spaces replaced by a text */
    QSF_TEXT_STEP_BYTES,  /* bytes written as characters (chars.h) */
    QSF_TEXT_STEP_KINDS
} QsfTextStepKind;

/* What is done with the matches of an expression. */
typedef enum QsfCut {
    QSF_CUT_ISOLATED,
    QSF_CUT_REMOVED,
    QSF_CUT_CONTIGUOUS,
    QSF_CUT_PREVIOUS,
    QSF_CUT_NEXT
} QsfCut;

typedef struct QsfTextStep {
    QsfTextStepKind kind;
    QsfRegex *re; /* or NULL */
    char *text;   /* (len) what is written, or searched for; on the libc heap */
    size_t len;
    char *by; /* (by_len) QSF_TEXT_STEP_REPLACE_TEXT: what is written */
    size_t by_len;
    QsfNormalForm form;
    QsfCut cut;
    bool invert;      /* of a split: what is between the matches are the matches */
    bool first_only;  /* of a prefix: only at the start of the text */
    bool left, right; /* which ends are stripped */
} QsfTextStep;

typedef struct QsfTextSteps {
    QsfTextStep step[QSF_TEXT_STEPS_MAX]; /* those of the normalizer first */
    unsigned n, n_normal;
    bool present;  /* the file has steps, maybe none */
    bool bytes;    /* there is a QSF_TEXT_STEP_BYTES */
    bool mapped;   /* ... and other steps follow: pieces are written in its characters. Otherwise
                      they are bytes. */
    size_t memory; /* bytes on the libc heap */
    const QsfCharsmap *charsmap;
    QsfLedger *ledger; /* for how much a text may grow; or NULL */
    char *path;        /* of the file, for messages; or NULL */
} QsfTextSteps;

/* Reads the steps of src; s->present is false if it has no such key. charsmap: its table. QSF_E_MODEL names a
 * step that is not known, or an expression that does not compile; QSF_E_RUNTIME. Close s in either case. */
int qsf_steps_open(QsfTextSteps *s, const QsfSource *src, const QsfCharsmap *charsmap, QsfErr *err);
/* Frees the steps; a zeroed one is allowed. */
void qsf_steps_close(QsfTextSteps *s);

/* Text and, for each byte, whether it is trusted. Zero-initialise; free the members. */
typedef struct QsfMasked {
    QsfStrbuf text, mask; /* mask is empty if there was none */
} QsfMasked;

/* Where a piece of text is. */
typedef struct QsfWhere {
    bool at_start;       /* at the start of the whole text */
    bool without_prefix; /* that start continues earlier text: nothing is put before it */
    size_t lead; /* at_start: parts that begin here or before are at the start too: the normalizer wrote them
                    for the first character, or before it */
} QsfWhere;

/* Normalizes text[0..len), which is UTF-8, into out. mask: NULL, or (len) bytes. A character of out
 * that replaces others is trusted if all of these are. *where loses at_start if the first
 * characters were dropped. other is scratch. QSF_E_RUNTIME without memory or if out would be many
 * times as long as text, QSF_E_INTERRUPTED. */
int qsf_steps_normalize(const QsfTextSteps *s, QsfRegexScratch *scratch, const char *text, size_t len,
                        const uint8_t *mask, QsfWhere *where, QsfMasked *out, QsfMasked *other, QsfErr *err);
/* Splits text[0..len), which is UTF-8, into pieces and calls fn for each of them. */
int qsf_steps_split(const QsfTextSteps *s, QsfRegexScratch *scratch, const char *text, size_t len,
                    QsfWhere where, QsfPieceFn fn, void *ctx, QsfErr *err);

/* Finds the matches of an expression one after another, as onig's iterator: an empty one right after a match
 * is not one. Zero-initialise next and end; any is false before the first match. */
typedef struct QsfMatches {
    size_t next, end;
    bool any;
} QsfMatches;
bool qsf_matches_next(QsfMatches *m, const QsfRegex *re, QsfRegexScratch *scratch, const char *text,
                      size_t len, size_t *begin, size_t *end);

#endif
