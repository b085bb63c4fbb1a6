/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Walks through a big JSON text from front to back without building a tree: a vocabulary of half a million
 * strings would take some hundred megabytes as one (json.h is for everything small). Input is untrusted. Any
 * thread, one walk in one thread at a time. Every function but init returns QSF_OK, or QSF_E_MODEL with the
 * byte offset and what was expected there; after an error the walk is over. */
#ifndef QSF_BASE_JSONSCAN_H
#define QSF_BASE_JSONSCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"
#include "src/base/strbuf.h"

typedef struct QsfJsonScan {
    const char *text;  /* borrowed */
    size_t len, at;    /* bytes; next byte */
} QsfJsonScan;

void qsf_jscan_init(QsfJsonScan *s, const char *text, size_t len);
/* First byte of the next value, '\0' at the end; takes only white space. */
char qsf_jscan_peek(QsfJsonScan *s);
/* Steps into an array ('[') or object ('{'). */
int qsf_jscan_enter(QsfJsonScan *s, char open, QsfErr *err);
/* To the next element or member; *more is false when the array or object ended, and that was taken. *first is
 * true before the first call and the function's own afterwards. */
int qsf_jscan_next(QsfJsonScan *s, char close, bool *first, bool *more, QsfErr *err);
/* A string, unescaped, in place of what out held: valid UTF-8 (lone surrogates are errors), NULs allowed.
 * QSF_E_RUNTIME without memory. */
int qsf_jscan_string(QsfJsonScan *s, QsfStrbuf *out, QsfErr *err);
/* A key and its colon. */
int qsf_jscan_key(QsfJsonScan *s, QsfStrbuf *out, QsfErr *err);
int qsf_jscan_number(QsfJsonScan *s, double *out, QsfErr *err);
/* A whole number from 0 to 2^64 - 1, exactly, written as digits alone (no sign, point or exponent). */
int qsf_jscan_u64(QsfJsonScan *s, uint64_t *out, QsfErr *err);
/* Any value, whose bytes are text[*begin..*end). Brackets match and are not nested deeper than 100 levels; what
 * else is in it was not looked at. */
int qsf_jscan_skip(QsfJsonScan *s, size_t *begin, size_t *end, QsfErr *err);
/* Nothing but white space is left. */
int qsf_jscan_end(QsfJsonScan *s, QsfErr *err);

#endif
