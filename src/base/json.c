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
#include "src/base/jsonscan.h"
#include "src/base/utf8.h"

#define TEXT_LIMIT  ((size_t)256 << 20)
#define DEPTH_LIMIT 200 /* jansson's parser recurses: this keeps it well inside a 256 KiB stack */

/* --- numbers that other programs write and jansson refuses: integers beyond 64 bits
 * (huggingface/transformers writes model_max_length as int(1e30) if it knows no limit), reals beyond a
 * double, and Python's Infinity and NaN --- */

#define LARGEST "1.7976931348623157e308" /* DBL_MAX */

/* What to write instead of a word. */
typedef enum Change { KEEP, REAL, LARGE } Change;

static bool in_word(char c) {
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '.' || c == '+' || c == '-';
}

static bool too_big(const char *digits, size_t n, bool negative) {
    const char *limit = negative ? "9223372036854775808" : "9223372036854775807";
    return n > 19 || (n == 19 && memcmp(digits, limit, 19) > 0);
}

static Change change_of(const char *word, size_t n) {
    static const char infinity[] = "Infinity";
    bool negative = n > 0 && *word == '-', plain = true;
    const char *p = word + negative;
    n -= negative;
    if (n == sizeof infinity - 1 && memcmp(p, infinity, n) == 0) return LARGE;
    if (!negative && n == 3 && memcmp(p, "NaN", n) == 0) return LARGE;
    if (n == 0 || *p < '0' || *p > '9') return KEEP;
    for (size_t i = 0; i < n && plain; i++) plain = p[i] >= '0' && p[i] <= '9';
    if (plain && !too_big(p, n, negative)) return KEEP;
    QsfJsonScan s;
    QsfErr e = { 0 };
    double v;
    qsf_jscan_init(&s, p, n);
    if (qsf_jscan_number(&s, &v, &e) != QSF_OK || s.at != n) return KEEP; /* the parser will name the place */
    return isinf(v) ? LARGE : plain ? REAL : KEEP;
}

/* The position after the string that begins at `at`. */
static size_t skip_string(const char *text, size_t len, size_t at) {
    for (at++; at < len && text[at] != '"'; at++) at += text[at] == '\\';
    return at < len ? at + 1 : len;
}

static void put_word(QsfStrbuf *out, const char *word, size_t n, Change change) {
    if (change == LARGE) {
        qsf_strbuf_adds(out, *word == '-' ? "-" LARGEST : LARGEST);
        return;
    }
    qsf_strbuf_add(out, word, n);
    if (change == REAL) qsf_strbuf_adds(out, ".0");
}

/* Appends text[0..len) to out, with integers outside int64_t written as reals, and numbers beyond
 * the largest double Infinity and NaN as the largest double, outside strings. Returns false, with
 * nothing appended, if there are none: then the text can be parsed as it is. Check out afterwards.
 * Does not check syntax. Any thread. */
static bool replace_numbers(const char *text, size_t len, QsfStrbuf *out) {
    size_t done = 0;
    for (size_t at = 0, end; at < len; at = end) {
        end = at + 1;
        if (text[at] == '"') end = skip_string(text, len, at);
        if (!in_word(text[at])) continue;
        while (end < len && in_word(text[end])) end++;
        Change change = change_of(text + at, end - at);
        if (change == KEEP) continue;
        qsf_strbuf_add(out, text + done, at - done);
        put_word(out, text + at, end - at, change);
        done = end;
    }
    if (done > 0) qsf_strbuf_add(out, text + done, len - done);
    return done > 0;
}

/* --- parsing --- */

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
    size_t taken; /* bytes of all allocations for this text */
    bool tapped;
} reserve;

/* An empty object takes 100 times its text: a text of 1 MB may not become 100. */
#define TREE_MOST(len) (((size_t)64 << 20) + 16 * (len))

static void *watched_malloc(size_t bytes) {
    void *p = malloc(bytes);
    reserve.taken += bytes;
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
    size_t left, most;
    bool begun, stopped; /* stopped: the thread is to stop; a short text is read nevertheless */
} Input;

static size_t feed(void *to, size_t cap, void *data) {
    Input *from = data;
    size_t n = from->left < cap ? from->left : cap;
    from->stopped = from->stopped || (from->begun && from->left > 0 && qsf_interrupted());
    from->begun = true;
    if (reserve.tapped || from->stopped || reserve.taken > from->most) return 0;
    if (n > PIECE) n = PIECE;
    memcpy(to, from->text, n);
    from->text += n;
    from->left -= n;
    return n;
}

/* Returns NULL on failure, with *memory set if out of memory, *stopped if interrupted, else
 * with *je filled. */
static json_t *load(const char *text, size_t len, bool *memory, bool *stopped, json_error_t *je) {
    Input input = { .text = text, .left = len, .most = TREE_MOST(len) };
    reserve.taken = 0;
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
    if (replace_numbers(text, len, &fixed)) {
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
    if (v == NULL && reserve.taken > TREE_MOST(len)) {
        qsf_err_set(err, QSF_E_RUNTIME, "JSON: its values take more than %zu MB", TREE_MOST(len) >> 20);
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
