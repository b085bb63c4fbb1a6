/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only file that includes jansson. QsfJson is jansson's json_t under another name. */
#include "src/base/json.h"

#ifndef QSF_WITHOUT_JANSSON

#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/jsonnumber.h"
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

/* jansson's scanner does not check whether its buffer could grow (2.14, src/load.c: lex_save): it drops a
 * character and, if that was the closing quote, reads past the end of the buffer. So an allocation must not
 * fail while it parses: if malloc fails, the memory comes from a reserve allocated beforehand, the input ends
 * at the next piece, and the result is discarded. */
#define PIECE         256u                /* bytes of text at a time */
#define RESERVE_EXTRA ((size_t)128 << 10) /* for the values of one piece; the rest is for one long string */

static _Thread_local struct {
    char *p; /* NULL: not parsing */
    size_t size, used;
    bool tapped;
} reserve;

static void *watched_malloc(size_t bytes) {
    void *p = malloc(bytes);
    if (p != NULL || reserve.p == NULL) return p;
    reserve.tapped = true;
    size_t left = reserve.size - reserve.used, rounded = (bytes | 15) + 1;
    if (bytes >= left || rounded > left) return NULL;
    reserve.used += rounded;
    return reserve.p + reserve.used - rounded;
}

static void watched_free(void *p) {
    if (reserve.p != NULL && (uintptr_t)p - (uintptr_t)reserve.p < reserve.size) return;
    free(p);
}

static void watch_memory(void) { json_set_alloc_funcs(watched_malloc, watched_free); }

typedef struct Input {
    const char *text;
    size_t left;
    bool begun, stopped; /* stopped: the thread is to stop; a short text is read nevertheless */
} Input;

static size_t feed(void *to, size_t cap, void *data) {
    Input *from = data;
    size_t n = from->left < cap ? from->left : cap;
    from->stopped = from->stopped || (from->begun && from->left > 0 && qsf_interrupted());
    from->begun = true;
    if (reserve.tapped || from->stopped) return 0;
    if (n > PIECE) n = PIECE;
    memcpy(to, from->text, n);
    from->text += n;
    from->left -= n;
    return n;
}

/* Returns NULL on failure, with *memory set if out of memory, *stopped if interrupted, else
 * with *je filled. */
static json_t *load(const char *text, size_t len, bool *memory, bool *stopped, json_error_t *je) {
    Input input = { .text = text, .left = len };
    reserve.size = 4 * len + RESERVE_EXTRA;
    reserve.used = 0;
    reserve.tapped = false;
    reserve.p = malloc(reserve.size); /* normally never touched, so it costs no resident memory */
    *memory = reserve.p == NULL;
    if (*memory) return NULL;
    json_t *v = json_load_callback(feed, &input, JSON_DECODE_ANY | JSON_ALLOW_NUL, je);
    *memory = reserve.tapped;
    *stopped = input.stopped;
    if (*memory || *stopped) {
        json_decref(v);
        v = NULL;
    }
    free(reserve.p);
    reserve.p = NULL;
    return v;
}

QsfJson *qsf_json_parse(const char *text, size_t len, QsfErr *err) {
    json_error_t je;
    const size_t mark = qsf_utf8_bom(text, len);
    text += mark;
    len -= mark;
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
    QsfStrbuf fixed = QSF_STRBUF_INIT;
    bool memory = false, stopped = false;
    json_t *v = NULL;
    if (qsf_json_numbers(text, len, &fixed)) {
        memory = !qsf_strbuf_ok(&fixed);
        text = qsf_strbuf_str(&fixed);
        len = fixed.len;
    }
    if (!memory) v = load(text, len, &memory, &stopped, &je);
    qsf_strbuf_free(&fixed);
    if (memory) {
        qsf_err_memory(err, "JSON");
        return NULL;
    }
    if (stopped) {
        (void)qsf_interrupt_check(err);
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
    if (len != NULL)
        *len = json_string_length(in(v));
    else if (json_string_length(in(v)) != strlen(json_string_value(in(v))))
        return NULL;
    return json_string_value(in(v));
}

int64_t qsf_json_int(const QsfJson *v, int64_t fallback) {
    if (json_is_integer(in(v))) return json_integer_value(in(v));
    if (!json_is_real(in(v))) return fallback;
    double d = json_real_value(in(v)); /* 1e3 is a real to the parser but a whole number to users */
    return d == floor(d) && fabs(d) < 9.0e18 ? (int64_t)d : fallback;
}

double qsf_json_real(const QsfJson *v, double fallback) {
    return json_is_number(in(v)) ? json_number_value(in(v)) : fallback;
}

bool qsf_json_bool(const QsfJson *v, bool fallback) {
    return json_is_boolean(in(v)) ? json_is_true(in(v)) : fallback;
}

#endif
