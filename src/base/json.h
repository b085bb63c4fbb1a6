/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only interface to jansson; builds without it use json_none.c, which cannot parse. Values are trees;
 * each function documents ownership. Input is untrusted: depth and size are limited. Any thread, but a tree
 * only in one thread at a time. */
#ifndef QSF_BASE_JSON_H
#define QSF_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"
#include "src/base/strbuf.h"

typedef struct QsfJson QsfJson;

typedef enum QsfJsonType {
    QSF_JSON_NULL,
    QSF_JSON_BOOL,
    QSF_JSON_INT,
    QSF_JSON_REAL,
    QSF_JSON_STRING,
    QSF_JSON_ARRAY,
    QSF_JSON_OBJECT
} QsfJsonType;

/* Parses one value, after a byte order mark if there is one. Members keep their order; of two with the same
 * key the later one counts; "\u0000" is allowed in strings. Integers outside int64_t are reals; numbers
 * beyond a double, Infinity and NaN are the largest double. Returns NULL with *err set (QSF_E_RUNTIME, line
 * and column) if it is not JSON, if its values take more than 64 MiB and 16 times the text, or this build
 * lacks jansson; QSF_E_INTERRUPTED and QSF_E_BUDGET if a long text was read and the thread is to stop
 * (interrupt.h). The caller frees the root. */
QsfJson *qsf_json_parse(const char *text, size_t len, QsfErr *err);
/* Frees a whole tree, and what was borrowed from it. NULL is allowed. */
void qsf_json_free(QsfJson *root);

/* Returns the type; that of null for v NULL. */
QsfJsonType qsf_json_type(const QsfJson *v);
/* Accessors. The result is borrowed; NULL if absent or if the value is not of that type. */
const QsfJson *qsf_json_get(const QsfJson *object, const char *key);
size_t qsf_json_size(const QsfJson *array_or_object);
const QsfJson *qsf_json_at(const QsfJson *array, size_t i);
/* Returns object member i, in order; *key is borrowed. Takes i steps: use qsf_json_next for big objects. */
const QsfJson *qsf_json_member(const QsfJson *object, size_t i, const char **key);
/* Iterates over the members in order: pass NULL, then the previous result, until it returns NULL. */
const void *qsf_json_next(const QsfJson *object, const void *iter, const char **key, const QsfJson **value);
/* Returns what a fragment ("#/KEY/0", where ~1 is a slash, ~0 a tilde and %HH a byte) leads to below root;
 * "#" is root itself. NULL: it leads nowhere, or a name in it is not valid or has 256 bytes or more. Both may
 * be NULL. */
const QsfJson *qsf_json_pointer(const QsfJson *root, const char *fragment);
/* Returns borrowed bytes and their length (may contain NULs), or NULL if v is not a string. Callers that need
 * a C string pass len NULL: then the result is also NULL if the string contains a NUL. */
const char *qsf_json_string(const QsfJson *v, size_t *len);
/* Return the value, or fallback if v is not of that type. */
int64_t qsf_json_int(const QsfJson *v, int64_t fallback);
double qsf_json_real(const QsfJson *v, double fallback);
bool qsf_json_bool(const QsfJson *v, bool fallback);
/* Is v this boolean? v may be NULL. */
static inline bool qsf_json_is(const QsfJson *v, bool value) {
    return v != NULL && qsf_json_bool(v, !value) == value;
}

/* Appends a JSON string to b, with quotes. Ill-formed UTF-8 becomes U+FFFD. */
void qsf_json_put_string(QsfStrbuf *b, const char *s, size_t len);
/* Appends the shortest decimal that reads back as the same double; null for NaN and infinities. */
void qsf_json_put_real(QsfStrbuf *b, double v);

#endif
