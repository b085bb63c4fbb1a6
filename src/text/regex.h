/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only door to PCRE2 (regex_none.c where a build leaves that out: then no expression compiles). Compiled
 * expressions are immutable and may be used from any thread, each thread with its own scratch. */
#ifndef QSF_TEXT_REGEX_H
#define QSF_TEXT_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/err.h"

typedef struct QsfRegex QsfRegex;
typedef struct QsfRegexScratch QsfRegexScratch;

/* Compiles a UTF-8 expression of PCRE2's syntax with Unicode classes; \s and \S mean the Unicode
 * property White_Space, $ only the very end. Uses the JIT where there is one. The caller frees *out.
 * QSF_E_RUNTIME with the offset of the fault, or that there is no PCRE2 in this build. */
int qsf_regex_compile(QsfRegex **out, const char *pattern, QsfErr *err);
void qsf_regex_free(QsfRegex *re); /* NULL allowed */
/* Bytes it occupies, machine code included. */
size_t qsf_regex_bytes(const QsfRegex *re);

/* Working memory for matching; NULL without memory. One thread at a time. */
QsfRegexScratch *qsf_regex_scratch_new(void);
void qsf_regex_scratch_free(QsfRegexScratch *s); /* NULL allowed */

/* First match in text[0..len) that begins at `from` or later: true and its place [*begin, *end), which may be
 * empty. False when there is none, a match limit was hit, or too many matches with this scratch were far dearer than their
 * length explains: an expression may come with a file and mean harm. text must be well-formed UTF-8 and
 * `from` the beginning of a character. */
bool qsf_regex_find(const QsfRegex *re, QsfRegexScratch *s, const char *text, size_t len, size_t from,
                    size_t *begin, size_t *end);

#endif
