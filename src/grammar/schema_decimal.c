/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers of a JSON Schema, exactly. Values of json.h are 64-bit integers and doubles; of numbers that
 * neither can hold, such as 18446744073709551615, the text is kept and found again by the nearest double. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/ascii.h"
#include "src/base/jsonscan.h"
#include "src/grammar/schema.h"

#define EXPONENT_MOST 100000

/* --- decimals --- */

/* The number at the end of a text, after e or E; too large ones are cut. */
static int exponent_of(const char *p, size_t n) {
    const bool minus = n > 0 && *p == '-';
    int e = 0;
    for (size_t i = n > 0 && (*p == '-' || *p == '+') ? 1 : 0; i < n; i++)
        if (e < EXPONENT_MOST) e = e * 10 + (p[i] - '0');
    return minus ? -e : e;
}

/* Appends the digit of 10^place; false if there are too many. */
static bool put_digit(QsfDecimal *d, char c, int64_t place) {
    if (place >= 0 && d->n_whole == 0 && c == '0') return true;
    if ((place >= 0 ? d->n_whole : d->n_part) >= QSF_SCHEMA_DIGITS) return c == '0' && place < 0;
    if (place >= 0)
        d->whole[d->n_whole++] = c;
    else
        d->part[d->n_part++] = c;
    return true;
}

/* Reads a number of JSON; false if it has too many digits. */
static bool to_decimal(const char *text, size_t len, QsfDecimal *d) {
    const char *at = text + (len > 0 && *text == '-'), *end = at;
    int64_t place = 0; /* of the first digit, then of the next one */
    bool ok = true, point = false;
    *d = (QsfDecimal){ .negative = at > text };
    for (; end < text + len && (*end | 0x20) != 'e'; end++) {
        point = point || *end == '.';
        place += !point;
    }
    if (end < text + len) place += exponent_of(end + 1, (size_t)(text + len - end) - 1);
    while (at < end && (*at == '0' || *at == '.')) place -= *at++ != '.'; /* 0 e 99999 has one digit */
    if (at == end) place = 0;
    for (int64_t i = -1; ok && i >= place; i--) ok = put_digit(d, '0', i);
    for (; ok && at < end; at++)
        if (*at != '.') ok = put_digit(d, *at, --place);
    for (; ok && place > 0;) ok = put_digit(d, '0', --place);
    while (d->n_part > 0 && d->part[d->n_part - 1] == '0') d->n_part--;
    if (d->n_whole == 0) d->whole[d->n_whole++] = '0';
    if (d->n_whole == 1 && d->whole[0] == '0' && d->n_part == 0) d->negative = false;
    return ok;
}

static int compare_size(const QsfDecimal *a, const QsfDecimal *b) {
    if (a->n_whole != b->n_whole) return a->n_whole < b->n_whole ? -1 : 1;
    const int whole = memcmp(a->whole, b->whole, a->n_whole);
    const size_t n = a->n_part < b->n_part ? a->n_part : b->n_part;
    const int part = whole != 0 ? whole : memcmp(a->part, b->part, n);
    if (part != 0 || a->n_part == b->n_part) return part;
    return a->n_part < b->n_part ? -1 : 1;
}

int qsf_decimal_compare(const QsfDecimal *a, const QsfDecimal *b) {
    if (a->negative != b->negative) return a->negative ? -1 : 1;
    return a->negative ? compare_size(b, a) : compare_size(a, b);
}

/* --- numbers that a double cannot hold --- */

static bool in_number(char c) { return (c >= '0' && c <= '9') || (c != '\0' && strchr("+-.eE", c) != NULL); }

/* Is it a 64-bit integer? Those are values of json.h as they are. */
static bool is_int64(const char *text, size_t len) {
    const bool minus = *text == '-';
    const char *limit = minus ? "9223372036854775808" : "9223372036854775807";
    const size_t n = len - minus;
    for (size_t i = minus; i < len; i++)
        if (text[i] < '0' || text[i] > '9') return false;
    return n < 19 || (n == 19 && memcmp(text + minus, limit, 19) <= 0);
}

/* May a double hold less than the number? Not one of 15 digits with a small exponent (DBL_DIG). */
static bool is_long(const char *text, size_t len) {
    size_t digits = 0, at = 0;
    for (; at < len && (text[at] | 0x20) != 'e'; at++) digits += text[at] >= '0' && text[at] <= '9';
    return !is_int64(text, len) && (digits > 15 || len - at > 4 ||
                                    abs(exponent_of(text + at + 1, at < len ? len - at - 1 : 0)) > 290);
}

static bool add_number(QsfSchema *s, const char *text, size_t len) {
    QsfJsonScan scan;
    QsfErr err = { 0 };
    double v = 0;
    qsf_jscan_init(&scan, text, len);
    (void)qsf_jscan_number(&scan, &v, &err); /* the parser accepted it */
    if (isinf(v)) v = v > 0 ? DBL_MAX : -DBL_MAX;
    if (s->n_exact == s->cap_exact) {
        const uint32_t cap = s->cap_exact > 0 ? s->cap_exact * 2 : 16;
        QsfExactNumber *p = cap <= QSF_GBUILD_NODES ? realloc(s->exact, cap * sizeof *p) : NULL;
        if (p == NULL) return qsf_gbuild_fail(s->b, QSF_E_USAGE, "the schema is too large") != 0;
        s->exact = p;
        s->cap_exact = cap;
    }
    s->exact[s->n_exact++] = (QsfExactNumber){ v, s->digits.len, len };
    qsf_strbuf_add(&s->digits, text, len);
    return qsf_strbuf_ok(&s->digits) || qsf_gbuild_no_memory(s->b) != 0;
}

static int by_value(const void *a, const void *b) {
    const double x = ((const QsfExactNumber *)a)->value, y = ((const QsfExactNumber *)b)->value;
    return (x > y) - (x < y);
}

static int by_value_and_length(const void *a, const void *b) {
    const size_t x = ((const QsfExactNumber *)a)->len, y = ((const QsfExactNumber *)b)->len;
    const int order = by_value(a, b);
    return order != 0 ? order : (x > y) - (x < y);
}

/* Two numbers with the same double are one number, which is written in the shortest way; otherwise the tree
 * does not say which of them is meant. */
static bool check_twins(QsfSchema *s) {
    qsort(s->exact, s->n_exact, sizeof *s->exact, by_value_and_length);
    for (uint32_t i = 1; i < s->n_exact && qsf_gbuild_step(s->b, 50); i++) {
        const QsfExactNumber *a = &s->exact[i - 1];
        QsfExactNumber *b = &s->exact[i];
        const char *x = qsf_strbuf_str(&s->digits) + a->at, *y = qsf_strbuf_str(&s->digits) + b->at;
        QsfDecimal p, q;
        if (a->value < b->value || (a->len == b->len && memcmp(x, y, a->len) == 0)) continue;
        if (to_decimal(x, a->len, &p) && to_decimal(y, b->len, &q) && qsf_decimal_compare(&p, &q) == 0) {
            *b = *a;
            continue;
        }
        qsf_schema_fail(s, 0, "the numbers %.*s and %.*s are too close to each other: not supported",
                        a->len < 100 ? (int)a->len : 100, x, b->len < 100 ? (int)b->len : 100, y);
    }
    return !s->b->failed;
}

/* Adds all numbers but 64-bit integers, or only looks for a long one; returns whether there is one. */
static bool each_number(QsfSchema *s, const char *text, size_t len, bool adding) {
    bool in_string = false, found = false;
    for (size_t i = 0; i < len && !s->b->failed; i++) {
        const char c = text[i];
        size_t end = i + 1;
        if (in_string && c == '\\') i++;
        if (c == '"') in_string = !in_string;
        if (in_string || c == '"') continue;
        if (c == 'N' || c == 'I') qsf_schema_fail(s, 0, "%s is not JSON", c == 'N' ? "NaN" : "Infinity");
        if (c != '-' && (c < '0' || c > '9')) continue;
        while (end < len && in_number(text[end])) end++;
        found = found || is_long(text + i, end - i);
        if (adding && !is_int64(text + i, end - i) && qsf_gbuild_step(s->b, 10))
            (void)add_number(s, text + i, end - i);
        i = end - 1;
    }
    return found && !s->b->failed;
}

bool qsf_schema_keep_numbers(QsfSchema *s, const char *text, size_t len) {
    if (!each_number(s, text, len, false)) return !s->b->failed;
    (void)each_number(s, text, len, true);
    return !s->b->failed && check_twins(s);
}

void qsf_schema_free_numbers(QsfSchema *s) {
    free(s->exact);
    qsf_strbuf_free(&s->digits);
}

const char *qsf_schema_exact(const QsfSchema *s, const QsfJson *v, size_t *len) {
    if (s->n_exact == 0 || qsf_json_type(v) != QSF_JSON_REAL) return NULL;
    const QsfExactNumber key = { .value = qsf_json_real(v, 0) };
    const QsfExactNumber *found = bsearch(&key, s->exact, s->n_exact, sizeof key, by_value);
    if (found == NULL) return NULL;
    *len = found->len;
    return qsf_strbuf_str(&s->digits) + found->at;
}

bool qsf_schema_decimal(QsfSchema *s, const QsfJson *v, uint32_t path, QsfDecimal *out) {
    QsfStrbuf own = QSF_STRBUF_INIT;
    size_t len = 0;
    const char *text = qsf_schema_exact(s, v, &len);
    if (text == NULL && qsf_json_type(v) == QSF_JSON_INT) {
        qsf_strbuf_addf(&own, "%lld", (long long)qsf_json_int(v, 0));
    } else if (text == NULL) {
        qsf_json_put_real(&own, qsf_json_real(v, 0));
    }
    if (text == NULL) text = qsf_strbuf_str(&own), len = own.len;
    const bool ok = to_decimal(text, len, out);
    qsf_strbuf_free(&own);
    return ok || qsf_schema_fail(s, path, "a number has more than %u digits", QSF_SCHEMA_DIGITS) != 0;
}
