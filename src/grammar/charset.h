/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sets of code points as ranges. Adding may fail without memory, or beyond QSF_CHARSET_MAX ranges: the set
 * is then marked as failed, which its user checks once. One thread; zeroed at the start. */
#ifndef QSF_GRAMMAR_CHARSET_H
#define QSF_GRAMMAR_CHARSET_H

#include <stdbool.h>
#include <stdint.h>

#define QSF_CHARSET_MAX 20000u
#define QSF_CODE_MAX    0x10FFFFu

typedef struct QsfRange {
    uint32_t lo, hi; /* both belong to it */
} QsfRange;

typedef struct QsfCharset {
    QsfRange *r; /* (n) owned */
    uint32_t n, cap;
    bool failed;
} QsfCharset;

/* Adds lo..hi, in any order; nothing if lo > hi. */
void qsf_charset_add(QsfCharset *s, uint32_t lo, uint32_t hi);
void qsf_charset_add_all(QsfCharset *s, const QsfRange *r, uint32_t n);
/* Sorts and merges the ranges and drops surrogates, which UTF-8 does not have. */
void qsf_charset_normalize(QsfCharset *s);
/* Replaces the set, which need not be normalized, by all other code points. */
void qsf_charset_negate(QsfCharset *s);
/* Sets *out, which is zeroed or was used before, to what is in both; both are normalized. */
void qsf_charset_intersect(QsfCharset *out, const QsfRange *a, uint32_t n_a, const QsfRange *b, uint32_t n_b);
void qsf_charset_free(QsfCharset *s);

#endif
