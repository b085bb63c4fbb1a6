/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Values of a body: implements reader.h. */
#include "serve/reader.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/plural.h"

bool serve_slice_is(const ServeSlice *s, const char *word) {
    return s->text != NULL && s->len == strlen(word) && memcmp(s->text, word, s->len) == 0;
}

bool serve_reader_fail(ServeReader *rd, const char *fmt, ...) {
    char text[800];
    va_list ap;
    if (qsf_jscan_peek(&rd->scan) == '\0' && rd->scan.at == rd->scan.len)
        return serve_error_set(rd->error, 400, NULL, NULL, "the body is not JSON: it ends too early");
    va_start(ap, fmt);
    (void)qsf_plural_vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return serve_error_set(rd->error, 400, NULL, rd->where, "%s%s%s", rd->where,
                           *rd->where != '\0' ? ": " : "", text);
}

/* What the scanner says, without "JSON: " in front. */
static const char *why_of(const char *msg) { return strncmp(msg, "JSON: ", 6) == 0 ? msg + 6 : msg; }

static bool scanned(ServeReader *rd, int rc, const QsfErr *err) {
    if (rc == QSF_OK) return true;
    if (rc == QSF_E_RUNTIME) return serve_error_set(rd->error, 500, NULL, NULL, "%s", err->msg);
    return serve_error_set(rd->error, 400, NULL, NULL, "the body is not JSON: %s", why_of(err->msg));
}

bool serve_reader_is(ServeReader *rd, char kind) {
    const char c = qsf_jscan_peek(&rd->scan);
    if (kind == 't') return c == 't' || c == 'f';
    if (kind == '0') return c == '-' || (c >= '0' && c <= '9');
    return c == kind;
}

bool serve_reader_raw(ServeReader *rd, ServeSlice *out) {
    QsfErr err = { 0 };
    size_t begin = 0, end = 0;
    const int rc = qsf_jscan_skip(&rd->scan, &begin, &end, &err);
    *out = (ServeSlice){ rd->body + begin, end - begin };
    return scanned(rd, rc, &err);
}

/* A decoded string is shorter than its JSON by the quotation marks, so there is space for the NUL. */
static bool take_string(ServeReader *rd, char *to, ServeSlice *out) {
    QsfErr err = { 0 };
    if (!scanned(rd, qsf_jscan_string(&rd->scan, &rd->word, &err), &err)) return false;
    if (rd->word.len > 0) memcpy(to, rd->word.data, rd->word.len);
    to[rd->word.len] = '\0';
    *out = (ServeSlice){ to, rd->word.len };
    return true;
}

bool serve_reader_string(ServeReader *rd, ServeSlice *out) {
    if (!serve_reader_is(rd, '"')) return serve_reader_fail(rd, "expected a string");
    return take_string(rd, rd->body + rd->scan.at, out);
}

bool serve_reader_append(ServeReader *rd, ServeSlice *to) {
    ServeSlice more;
    if (to->text == NULL) return serve_reader_string(rd, to);
    if (!serve_reader_is(rd, '"')) return serve_reader_fail(rd, "expected a string");
    if (!take_string(rd, to->text + to->len, &more)) return false;
    to->len += more.len;
    return true;
}

bool serve_reader_bool(ServeReader *rd, bool *out) {
    ServeSlice word;
    if (!serve_reader_is(rd, 't')) return serve_reader_fail(rd, "expected true or false");
    if (!serve_reader_raw(rd, &word)) return false;
    *out = word.len == 4 && memcmp(word.text, "true", 4) == 0;
    if (*out || (word.len == 5 && memcmp(word.text, "false", 5) == 0)) return true;
    return serve_reader_fail(rd, "expected true or false");
}

bool serve_reader_number(ServeReader *rd, double *out) {
    QsfErr err = { 0 };
    if (!serve_reader_is(rd, '0')) return serve_reader_fail(rd, "expected a number");
    const char *digits = rd->body + rd->scan.at + (qsf_jscan_peek(&rd->scan) == '-');
    const size_t left = rd->scan.len - (size_t)(digits - rd->body);
    if (left > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9')
        return serve_reader_fail(rd, "a number has no leading zeros");
    return scanned(rd, qsf_jscan_number(&rd->scan, out, &err), &err);
}

bool serve_reader_count(ServeReader *rd, uint32_t min, uint32_t max, uint32_t *out) {
    double v;
    if (!serve_reader_number(rd, &v)) return false;
    if (!(v >= min && v <= max) || v > floor(v))
        return serve_reader_fail(rd, "expected a whole number from %u to %u", min, max);
    *out = (uint32_t)v;
    return true;
}

bool serve_reader_enter(ServeReader *rd, char open) {
    QsfErr err = { 0 };
    if (!serve_reader_is(rd, open))
        return serve_reader_fail(rd, "expected an %s", open == '[' ? "array" : "object");
    return scanned(rd, qsf_jscan_enter(&rd->scan, open, &err), &err);
}

bool serve_reader_begin_body(ServeReader *rd) {
    if (serve_reader_is(rd, '{')) return serve_reader_enter(rd, '{');
    return serve_error_set(rd->error, 400, NULL, NULL, "the body is %s",
                           rd->scan.at == rd->scan.len ? "empty: a JSON object is expected"
                                                       : "not a JSON object in UTF-8");
}

bool serve_reader_end_body(ServeReader *rd) {
    QsfErr err = { 0 };
    if (rd->error->status != 0) return false;
    return scanned(rd, qsf_jscan_end(&rd->scan, &err), &err);
}

/* Is the next value null? Then it is consumed. */
static bool skip_null(ServeReader *rd, bool *is_null) {
    ServeSlice word;
    *is_null = qsf_jscan_peek(&rd->scan) == 'n';
    if (!*is_null) return true;
    if (!serve_reader_raw(rd, &word)) return false;
    if (word.len == 4 && memcmp(word.text, "null", 4) == 0) return true;
    return serve_error_set(rd->error, 400, NULL, NULL, "the body is not JSON: '%.*s' is not a value",
                           (int)(word.len < 40 ? word.len : 40), word.text);
}

bool serve_reader_next(ServeReader *rd, char open, bool *first, bool *more) {
    QsfErr err = { 0 };
    bool is_null = true;
    while (is_null) {
        int rc = qsf_jscan_next(&rd->scan, open == '[' ? ']' : '}', first, more, &err);
        if (rc == QSF_OK && *more && open == '{') rc = qsf_jscan_key(&rd->scan, &rd->key, &err);
        if (!scanned(rd, rc, &err)) return false;
        if (!*more || open == '[') return true;
        if (!skip_null(rd, &is_null)) return false;
    }
    return true;
}
