/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only file that uses PCRE2 (regex_none.c if a build omits it: then no expression compiles). Compiled
 * expressions are immutable and may be used from any thread, each thread with its own scratch. */
#ifndef QSF_TOKEN_REGEX_H
#define QSF_TOKEN_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "src/base/err.h"

typedef struct QsfRegex QsfRegex;
typedef struct QsfRegexScratch QsfRegexScratch;

/* Compiles a UTF-8 expression of PCRE2's syntax with Unicode classes; \s and \S mean the Unicode property
 * White_Space, $ only the very end. Uses the JIT if available. The caller frees *out. QSF_E_RUNTIME with the
 * offset of the error, or if this build has no PCRE2. */
int qsf_regex_compile(QsfRegex **out, const char *pattern, QsfErr *err);
/* The same for an expression that was written for Oniguruma with Ruby's syntax, which huggingface/tokenizers
 * uses: ^ and $ are the ends of lines, \w and \b know all letters and marks of Unicode, {m,n}+ repeats.
 * Syntax that means something else in PCRE2 and cannot be rewritten is an error that names it. */
int qsf_regex_compile_ruby(QsfRegex **out, const char *pattern, QsfErr *err);
void qsf_regex_free(QsfRegex *re); /* NULL allowed */
/* Its size in bytes, including machine code. */
size_t qsf_regex_bytes(const QsfRegex *re);

/* Scratch memory for matching; NULL without memory. One thread at a time. */
QsfRegexScratch *qsf_regex_scratch_new(void);
void qsf_regex_scratch_free(QsfRegexScratch *s); /* NULL allowed */

/* First match in text[0..len) at or after `from`: true and its range [*begin, *end), which may be empty.
 * False if there is none, a match limit was exceeded, or too many matches with this scratch were far more
 * expensive than their length explains: an expression from a file may be hostile. Also false soon
 * after the thread is to stop (interrupt.h), which callers check. text must be well-formed UTF-8 and
 * `from` the start of a character. */
bool qsf_regex_find(const QsfRegex *re, QsfRegexScratch *s, const char *text, size_t len, size_t from,
                    size_t *begin, size_t *end);

#endif
