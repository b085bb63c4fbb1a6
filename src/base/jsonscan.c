/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Streaming reader of JSON (RFC 8259). */
#include "src/base/jsonscan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/ascii.h"
#include "src/base/checked.h"
#include "src/base/utf8.h"

#define MAX_DEPTH 100 /* also in the message below */

void qsf_jscan_init(QsfJsonScan *s, const char *text, size_t len) {
    *s = (QsfJsonScan){ .text = text, .len = len, .at = qsf_utf8_bom(text, len) };
}

static int expected(const QsfJsonScan *s, const char *what, QsfErr *err) {
    return qsf_err_set(err, QSF_E_MODEL,
                       s->at < s->len ? "JSON: byte %zu: expected %s" : "JSON: ends at byte %zu: expected %s",
                       s->at, what);
}

char qsf_jscan_peek(QsfJsonScan *s) {
    while (s->at < s->len && memchr(" \t\r\n", s->text[s->at], 4) != NULL) s->at++;
    return s->at < s->len ? s->text[s->at] : '\0';
}

static int take(QsfJsonScan *s, char c, QsfErr *err) {
    char what[] = { '\'', c, '\'', '\0' };
    if (qsf_jscan_peek(s) != c) return expected(s, what, err);
    s->at++;
    return QSF_OK;
}

int qsf_jscan_enter(QsfJsonScan *s, char open, QsfErr *err) { return take(s, open, err); }

int qsf_jscan_next(QsfJsonScan *s, char close, bool *first, bool *more, QsfErr *err) {
    *more = qsf_jscan_peek(s) != close;
    bool comma = *more && !*first;
    *first = false;
    return comma || !*more ? take(s, comma ? ',' : close, err) : QSF_OK;
}

/* --- strings --- */

static int hex4(const QsfJsonScan *s, size_t at, uint32_t *out) {
    *out = 0;
    if (s->len - at < 4) return -1;
    for (size_t i = at; i < at + 4; i++) {
        const int digit = qsf_hex_digit(s->text[i]);
        if (digit < 0) return -1;
        *out = *out << 4 | (uint32_t)digit;
    }
    return 0;
}

/* Decodes a \u escape whose four hex digits begin at s->at; two escapes for a surrogate pair. */
static int unicode_escape(QsfJsonScan *s, QsfStrbuf *out, QsfErr *err) {
    uint32_t hi, lo;
    if (hex4(s, s->at, &hi) != 0) return expected(s, "four hexadecimal digits", err);
    if (hi >= 0xDC00 && hi <= 0xDFFF) return expected(s, "no lone surrogate", err);
    s->at += 4;
    if (hi >= 0xD800 && hi <= 0xDBFF) {
        bool pair = s->len - s->at >= 6 && memcmp(s->text + s->at, "\\u", 2) == 0 &&
                    hex4(s, s->at + 2, &lo) == 0;
        if (!pair || lo < 0xDC00 || lo > 0xDFFF)
            return expected(s, "the second half of a surrogate pair", err);
        s->at += 6;
        hi = 0x10000 + ((hi - 0xD800) << 10) + (lo - 0xDC00);
    }
    qsf_strbuf_add_utf8(out, hi);
    return QSF_OK;
}

static int escape(QsfJsonScan *s, QsfStrbuf *out, QsfErr *err) {
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char c = s->at < s->len ? s->text[s->at] : '\0';
    if (c == 'u') {
        s->at++;
        return unicode_escape(s, out, err);
    }
    const char *p = c != '\0' ? strchr(letters, c) : NULL;
    if (p == NULL) return expected(s, "a JSON escape sequence", err);
    qsf_strbuf_addc(out, values[p - letters]);
    s->at++;
    return QSF_OK;
}

/* Counts the literal bytes at s->at, up to a quote, escape, control character or ill-formed UTF-8. */
static size_t plain_run(const QsfJsonScan *s) {
    size_t i = s->at;
    while (i < s->len) {
        unsigned char c = (unsigned char)s->text[i];
        if (c < 0x20 || c == '"' || c == '\\') break;
        uint32_t cp;
        size_t n = c < 0x80 ? 1 : qsf_utf8_next(s->text + i, s->len - i, &cp);
        if (c >= 0x80 && cp == 0xFFFFFFFFu) break;
        i += n;
    }
    return i - s->at;
}

int qsf_jscan_string(QsfJsonScan *s, QsfStrbuf *out, QsfErr *err) {
    int rc = QSF_OK;
    qsf_strbuf_clear(out);
    if (qsf_jscan_peek(s) != '"') return expected(s, "a string", err);
    for (s->at++; rc == QSF_OK;) {
        size_t n = plain_run(s);
        qsf_strbuf_add(out, s->text + s->at, n);
        s->at += n;
        if (s->at == s->len) return expected(s, "the end of a string", err);
        char c = s->text[s->at];
        if (c == '"') break;
        if (c != '\\')
            return expected(s, (unsigned char)c < 0x20 ? "no unescaped control character" : "valid UTF-8",
                            err);
        s->at++;
        rc = escape(s, out, err);
    }
    if (rc != QSF_OK) return rc;
    s->at++;
    return qsf_strbuf_ok(out) ? QSF_OK : qsf_err_memory(err, "JSON");
}

int qsf_jscan_key(QsfJsonScan *s, QsfStrbuf *out, QsfErr *err) {
    int rc = qsf_jscan_string(s, out, err);
    return rc == QSF_OK ? take(s, ':', err) : rc;
}

/* --- numbers: no strtod, whose decimal point is the locale's --- */

typedef struct Decimal {
    uint64_t digits; /* the first 19 */
    int exponent;    /* power of ten */
    unsigned n;      /* digits read */
} Decimal;

static void read_digits(QsfJsonScan *s, Decimal *d, int step) {
    d->n = 0;
    for (; s->at < s->len && s->text[s->at] >= '0' && s->text[s->at] <= '9'; s->at++, d->n++) {
        bool fits = d->digits <= (UINT64_MAX - 9) / 10;
        if (fits) d->digits = d->digits * 10 + (uint64_t)(s->text[s->at] - '0');
        if (d->exponent > -100000 && d->exponent < 100000) d->exponent += fits ? step : step + 1;
    }
}

static bool skip_char(QsfJsonScan *s, const char *set) {
    bool found = s->at < s->len && strchr(set, s->text[s->at]) != NULL && s->text[s->at] != '\0';
    s->at += found;
    return found;
}

static int read_exponent(QsfJsonScan *s, int *exponent, QsfErr *err) {
    Decimal e = { 0 };
    bool negative = s->at < s->len && s->text[s->at] == '-';
    (void)skip_char(s, "+-");
    read_digits(s, &e, 0);
    if (e.n == 0) return expected(s, "a digit", err);
    int value = e.digits > 100000 ? 100000 : (int)e.digits;
    *exponent += negative ? -value : value;
    return QSF_OK;
}

/* A power of ten that a double holds exactly, as it does 53 bits of digits, makes the quotient or the product
 * the nearest double. The others, which are rare, are read by the C library: without a point, for which a
 * locale could want a comma. */
static double value_of(const Decimal *d) {
    static const double power[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    const int n = d->exponent < 0 ? -d->exponent : d->exponent;
    char text[48];
    if (d->digits == 0) return 0;
    if (d->digits >> 53 == 0 && n < (int)(sizeof power / sizeof *power))
        return d->exponent < 0 ? (double)d->digits / power[n] : (double)d->digits * power[n];
    snprintf(text, sizeof text, "%llue%d", (unsigned long long)d->digits, d->exponent);
    return strtod(text, NULL);
}

int qsf_jscan_number(QsfJsonScan *s, double *out, QsfErr *err) {
    Decimal d = { 0 };
    bool negative = qsf_jscan_peek(s) == '-';
    s->at += negative;
    read_digits(s, &d, 0);
    if (d.n == 0) return expected(s, "a number", err);
    if (skip_char(s, ".")) {
        read_digits(s, &d, -1);
        if (d.n == 0) return expected(s, "a digit", err);
    }
    int rc = skip_char(s, "eE") ? read_exponent(s, &d.exponent, err) : QSF_OK;
    *out = negative && d.digits > 0 ? -value_of(&d) : value_of(&d);
    return rc;
}

int qsf_jscan_u64(QsfJsonScan *s, uint64_t *out, QsfErr *err) {
    char first = qsf_jscan_peek(s);
    size_t begin = s->at;
    uint64_t v = 0;
    for (; s->at < s->len && s->text[s->at] >= '0' && s->text[s->at] <= '9'; s->at++)
        if (!qsf_mul_u64(v, 10, &v) || !qsf_add_u64(v, (uint64_t)(s->text[s->at] - '0'), &v))
            return expected(s, "a whole number below 2^64", err);
    bool whole = s->at > begin && (first != '0' || s->at == begin + 1);
    if (s->at < s->len && strchr(".eE", s->text[s->at]) != NULL && s->text[s->at] != '\0') whole = false;
    if (!whole) return expected(s, "a whole number, 0 or more", err);
    *out = v;
    return QSF_OK;
}

/* --- skipping values --- */

static int skip_string(QsfJsonScan *s, QsfErr *err) {
    for (s->at++; s->at < s->len && s->text[s->at] != '"'; s->at++) s->at += s->text[s->at] == '\\';
    if (s->at >= s->len) {
        s->at = s->len;
        return expected(s, "the end of a string", err);
    }
    s->at++;
    return QSF_OK;
}

static int skip_word(QsfJsonScan *s, QsfErr *err) {
    size_t begin = s->at;
    while (s->at < s->len && memchr(" \t\r\n,]}:[{\"", s->text[s->at], 11) == NULL) s->at++;
    return s->at > begin ? QSF_OK : expected(s, "a value", err);
}

int qsf_jscan_skip(QsfJsonScan *s, size_t *begin, size_t *end, QsfErr *err) {
    char closing[MAX_DEPTH];
    unsigned depth = 0;
    int rc = QSF_OK;
    (void)qsf_jscan_peek(s);
    *begin = *end = s->at;
    do {
        char c = qsf_jscan_peek(s);
        if (c == '"') {
            rc = skip_string(s, err);
        } else if (c == '[' || c == '{') {
            if (depth == MAX_DEPTH) return expected(s, "at most 100 levels of nesting", err);
            closing[depth++] = c == '[' ? ']' : '}';
            s->at++;
        } else if (depth > 0 && (c == closing[depth - 1] || c == ',' || c == ':')) {
            if (c == closing[depth - 1]) depth--;
            s->at++;
        } else {
            rc = skip_word(s, err);
        }
    } while (rc == QSF_OK && depth > 0);
    *end = s->at;
    return rc;
}

int qsf_jscan_end(QsfJsonScan *s, QsfErr *err) {
    (void)qsf_jscan_peek(s);
    return s->at == s->len ? QSF_OK : expected(s, "the end of the text", err);
}
