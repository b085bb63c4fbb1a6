/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only file that includes jansson. QsfJson is jansson's json_t under another name. */
#include "src/base/json.h"

#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/utf8.h"

#define TEXT_LIMIT  ((size_t)256 << 20)
#define DEPTH_LIMIT 200 /* jansson's parser recurses: this keeps it well inside a 256 KiB stack */

static const json_t *in(const QsfJson *v) { return (const json_t *)(const void *)v; }
static const QsfJson *outv(const json_t *v) { return (const QsfJson *)(const void *)v; }

/* Deepest nesting of brackets outside strings. */
static size_t depth_of(const char *text, size_t len) {
    size_t depth = 0, deepest = 0;
    bool in_string = false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (in_string) {
            if (c == '\\') i++;
            if (c == '"') in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > deepest) deepest = depth;
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return deepest;
}

/* jansson's scanner goes on when its buffer cannot grow, and leaves bytes of a string out: whoever sees memory
 * fail must not believe what came of it. */
static _Thread_local bool memory_failed;

static void *watched_malloc(size_t bytes) {
    void *p = malloc(bytes);
    if (p == NULL) memory_failed = true;
    return p;
}

static void watch_memory(void) { json_set_alloc_funcs(watched_malloc, free); }

QsfJson *qsf_json_parse(const char *text, size_t len, QsfErr *err) {
    json_error_t je;
    if (len > TEXT_LIMIT) {
        qsf_err_set(err, QSF_E_RUNTIME, "JSON: %zu bytes are more than the limit of %zu", len, TEXT_LIMIT);
        return NULL;
    }
    if (depth_of(text, len) > DEPTH_LIMIT) {
        qsf_err_set(err, QSF_E_RUNTIME, "JSON: nested deeper than %d levels", DEPTH_LIMIT);
        return NULL;
    }
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    pthread_once(&watched, watch_memory);
    memory_failed = false;
    json_t *v = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &je);
    if (memory_failed) {
        json_decref(v);
        qsf_err_set(err, QSF_E_RUNTIME, "JSON: out of memory");
        return NULL;
    }
    if (v == NULL) {
        qsf_err_set(err, QSF_E_RUNTIME, "JSON: line %d, column %d: %s", je.line, je.column, je.text);
        return NULL;
    }
    return (QsfJson *)(void *)v;
}

void qsf_json_free(QsfJson *root) { json_decref((json_t *)(void *)root); }

QsfJsonType qsf_json_type(const QsfJson *v) {
    static const QsfJsonType types[] = {
        [JSON_OBJECT] = QSF_JSON_OBJECT, [JSON_ARRAY] = QSF_JSON_ARRAY, [JSON_STRING] = QSF_JSON_STRING,
        [JSON_INTEGER] = QSF_JSON_INT,   [JSON_REAL] = QSF_JSON_REAL,   [JSON_TRUE] = QSF_JSON_BOOL,
        [JSON_FALSE] = QSF_JSON_BOOL,    [JSON_NULL] = QSF_JSON_NULL,
    };
    return v == NULL ? QSF_JSON_NULL : types[json_typeof(in(v))];
}

const QsfJson *qsf_json_get(const QsfJson *object, const char *key) {
    return outv(json_object_get(in(object), key));
}

size_t qsf_json_size(const QsfJson *v) {
    return json_is_array(in(v)) ? json_array_size(in(v)) : json_object_size(in(v));
}

const QsfJson *qsf_json_at(const QsfJson *array, size_t i) { return outv(json_array_get(in(array), i)); }

const void *qsf_json_next(const QsfJson *object, const void *iter, const char **key, const QsfJson **value) {
    json_t *o = (json_t *)(uintptr_t)(const void *)object;
    void *it = iter == NULL ? json_object_iter(o) : json_object_iter_next(o, (void *)(uintptr_t)iter);
    if (it == NULL) return NULL;
    *key = json_object_iter_key(it);
    *value = outv(json_object_iter_value(it));
    return it;
}

const QsfJson *qsf_json_member(const QsfJson *object, size_t i, const char **key) {
    const QsfJson *value = NULL;
    const void *it = NULL;
    do {
        it = qsf_json_next(object, it, key, &value);
    } while (it != NULL && i-- > 0);
    return it == NULL ? NULL : value;
}

const char *qsf_json_string(const QsfJson *v, size_t *len) {
    if (!json_is_string(in(v))) return NULL;
    if (len != NULL) *len = json_string_length(in(v));
    return json_string_value(in(v));
}

int64_t qsf_json_int(const QsfJson *v, int64_t fallback) {
    if (json_is_integer(in(v))) return json_integer_value(in(v));
    if (!json_is_real(in(v))) return fallback;
    double d = json_real_value(in(v)); /* 1e3 is a real to the parser but a whole number to people */
    return d == floor(d) && fabs(d) < 9.0e18 ? (int64_t)d : fallback;
}

double qsf_json_real(const QsfJson *v, double fallback) {
    return json_is_number(in(v)) ? json_number_value(in(v)) : fallback;
}

bool qsf_json_bool(const QsfJson *v, bool fallback) {
    return json_is_boolean(in(v)) ? json_is_true(in(v)) : fallback;
}

/* One code point as it must stand inside a JSON string. Beyond what RFC 8259 asks for, DEL, C1 and
 * the line separators are escaped too: the text may be shown on a terminal. */
static void put_code_point(QsfStrbuf *b, uint32_t cp) {
    static const char letters[32] = { ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't' };
    if (cp == '"' || cp == '\\') {
        qsf_strbuf_addc(b, '\\');
        qsf_strbuf_addc(b, (char)cp);
    } else if (cp < 32 && letters[cp] != 0) {
        qsf_strbuf_addc(b, '\\');
        qsf_strbuf_addc(b, letters[cp]);
    } else if (cp < 32 || (cp >= 0x7F && cp <= 0x9F) || cp == 0x2028 || cp == 0x2029) {
        qsf_strbuf_addf(b, "\\u%04x", (unsigned)cp);
    } else {
        qsf_strbuf_add_utf8(b, cp == 0xFFFFFFFFu ? 0xFFFD : cp);
    }
}

void qsf_json_put_string(QsfStrbuf *b, const char *s, size_t len) {
    qsf_strbuf_addc(b, '"');
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        i += qsf_utf8_next(s + i, len - i, &cp);
        put_code_point(b, cp);
    }
    qsf_strbuf_addc(b, '"');
}

/* The fewest digits that read back as v; without an exponent where people would write none. */
static void shortest_real(char *text, size_t cap, double v) {
    int digits = 1;
    do {
        snprintf(text, cap, "%.*e", digits - 1, v);
    } while ((strtod(text, NULL) < v || strtod(text, NULL) > v) && ++digits <= 17);
    int exponent = atoi(strchr(text, 'e') + 1), decimals = digits - 1 - exponent;
    if (exponent >= -5 && exponent < 15) snprintf(text, cap, "%.*f", decimals > 0 ? decimals : 0, v);
}

void qsf_json_put_real(QsfStrbuf *b, double v) {
    char text[64];
    if (!isfinite(v)) {
        qsf_strbuf_adds(b, "null");
        return;
    }
    shortest_real(text, sizeof text, v);
    bool point = false; /* the decimal point of the locale may be any bytes; JSON's is '.' */
    for (const char *p = text; *p != '\0'; p++) {
        if (strchr("0123456789+-e", *p) != NULL) {
            qsf_strbuf_addc(b, *p);
        } else if (!point) {
            qsf_strbuf_addc(b, '.');
            point = true;
        }
    }
}
