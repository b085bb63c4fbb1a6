/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only door to jansson (json_none.c where a build leaves that out: then nothing is read). Values are
 * reference-counted trees; see each function for who owns. Input is untrusted: depth and size are limited.
 * Any thread, one tree in one thread at a time. */
#ifndef QSF_BASE_JSON_H
#define QSF_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"
#include "src/base/strbuf.h"

typedef struct QsfJson QsfJson;

typedef enum QsfJsonType {
    QSF_JSON_NULL, QSF_JSON_BOOL, QSF_JSON_INT, QSF_JSON_REAL, QSF_JSON_STRING, QSF_JSON_ARRAY,
    QSF_JSON_OBJECT
} QsfJsonType;

/* Parses one value; members keep their order; "\u0000" is allowed in strings. NULL with *err
 * (QSF_E_RUNTIME, line and column) when it is not JSON, or there is no jansson in this build. The caller frees the
 * root. */
QsfJson *qsf_json_parse(const char *text, size_t len, QsfErr *err);
void qsf_json_free(QsfJson *root);

QsfJsonType qsf_json_type(const QsfJson *v);
/* Borrowed members; NULL when absent or v is not of that kind. */
const QsfJson *qsf_json_get(const QsfJson *object, const char *key);
size_t qsf_json_size(const QsfJson *array_or_object);
const QsfJson *qsf_json_at(const QsfJson *array, size_t i);
/* Object member i in order; *key borrowed. Costs i steps: walk big objects with qsf_json_next. */
const QsfJson *qsf_json_member(const QsfJson *object, size_t i, const char **key);
/* Walks the members in order: pass NULL, then what the last call returned, until it returns NULL. */
const void *qsf_json_next(const QsfJson *object, const void *iter, const char **key, const QsfJson **value);
/* Borrowed bytes with their length (may hold NUL), or NULL when v is not a string. len NULL is for callers that want a
 * C string: then a string with a NUL in it is none. */
const char *qsf_json_string(const QsfJson *v, size_t *len);
/* Number or fallback. */
int64_t qsf_json_int(const QsfJson *v, int64_t fallback);
double qsf_json_real(const QsfJson *v, double fallback);
bool qsf_json_bool(const QsfJson *v, bool fallback);

/* Writing: appends to b, quotes included. A string that is not UTF-8 gets U+FFFD for its bad bytes. */
void qsf_json_put_string(QsfStrbuf *b, const char *s, size_t len);
/* Shortest decimal that reads back as the same double; NaN and infinities become null. */
void qsf_json_put_real(QsfStrbuf *b, double v);

#endif
