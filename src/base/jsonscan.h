/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Streaming JSON reader for large files: reads front to back without building a tree, which would take
 * hundreds of megabytes for a vocabulary of half a million strings (json.h is for small input). Input is
 * untrusted. Any thread, one scan in one thread at a time. Functions that return int return QSF_OK, or
 * QSF_E_MODEL with the byte offset and what was expected there; a scan cannot continue after an error. */
#ifndef QSF_BASE_JSONSCAN_H
#define QSF_BASE_JSONSCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"
#include "src/base/strbuf.h"

typedef struct QsfJsonScan {
    const char *text; /* borrowed */
    size_t len, at;   /* bytes; next byte */
} QsfJsonScan;

/* Begins after a byte order mark, if there is one. */
void qsf_jscan_init(QsfJsonScan *s, const char *text, size_t len);
/* Skips white space and returns the first byte of the next value, '\0' at the end. Does not consume it. */
char qsf_jscan_peek(QsfJsonScan *s);
/* Enters an array ('[') or object ('{'). */
int qsf_jscan_enter(QsfJsonScan *s, char open, QsfErr *err);
/* Moves to the next element or member. Sets *more to false at the end of the array or object, which it
 * consumes. *first must be true before the first call and belongs to the function afterwards. */
int qsf_jscan_next(QsfJsonScan *s, char close, bool *first, bool *more, QsfErr *err);
/* Reads a string and replaces the contents of out with it, unescaped: valid UTF-8 (lone surrogates are
 * errors), NULs allowed. QSF_E_RUNTIME if out of memory. */
int qsf_jscan_string(QsfJsonScan *s, QsfStrbuf *out, QsfErr *err);
/* Reads a key and its colon. */
int qsf_jscan_key(QsfJsonScan *s, QsfStrbuf *out, QsfErr *err);
/* Reads a number; beyond a double it is the largest one. */
int qsf_jscan_number(QsfJsonScan *s, double *out, QsfErr *err);
/* Reads an exact integer from 0 to 2^64 - 1, written with digits only (no sign, point or exponent). */
int qsf_jscan_u64(QsfJsonScan *s, uint64_t *out, QsfErr *err);
/* Skips any value; its bytes are text[*begin..*end). Checks only that brackets match and are nested at most
 * 100 levels deep. */
int qsf_jscan_skip(QsfJsonScan *s, size_t *begin, size_t *end, QsfErr *err);
/* Checks that only white space is left. */
int qsf_jscan_end(QsfJsonScan *s, QsfErr *err);

#endif
