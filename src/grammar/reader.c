/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Places and characters in the text of a grammar: implements reader.h. */
#include "src/grammar/reader.h"

#include <stdio.h>

#include "src/base/ascii.h"
#include "src/base/utf8.h"

/* Continues at the last place, because most are asked for in the order of the text. */
void qsf_read_place(QsfReadText *r, size_t at, uint32_t *line, uint32_t *col) {
    uint32_t code;
    if (r->place_line == 0 || at < r->place_at) r->place_at = 0, r->place_line = r->place_col = 1;
    for (; r->place_at < at && r->place_at < r->len; ++r->place_col) {
        r->place_at += qsf_utf8_next(r->text + r->place_at, r->len - r->place_at, &code);
        if (code == '\n') ++r->place_line, r->place_col = 0;
    }
    *line = r->place_line;
    *col = r->place_col;
}

uint32_t qsf_read_fail(QsfReadText *r, size_t at, const char *fmt, ...) {
    char what[400];
    uint32_t line, col;
    va_list ap;
    if (r->b->failed) return 0;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    qsf_read_place(r, at, &line, &col);
    if (r->lines) return qsf_gbuild_fail(r->b, QSF_E_USAGE, "line %u, column %u: %s", line, col, what);
    return qsf_gbuild_fail(r->b, QSF_E_USAGE, "character %u: %s", col, what);
}

uint32_t qsf_read_code(QsfReadText *r) {
    uint32_t code;
    r->at += qsf_utf8_next(r->text + r->at, r->len - r->at, &code);
    return code;
}

uint32_t qsf_read_hex(QsfReadText *r, unsigned n, const char *what) {
    uint32_t v = 0;
    const size_t at = r->at;
    for (unsigned i = 0; i < n; i++) {
        const int d = qsf_hex_digit(qsf_read_peek(r));
        if (d < 0) return qsf_read_fail(r, at, "the escape %s needs %u hexadecimal digits", what, n);
        v = v << 4 | (uint32_t)d;
        r->at++;
    }
    return v;
}

bool qsf_read_number(QsfReadText *r, uint32_t *out) {
    const size_t at = r->at;
    uint64_t v = 0;
    for (char c; (c = qsf_read_peek(r)) >= '0' && c <= '9'; r->at++)
        v = v * 10 + (unsigned)(c - '0') < 1000000000u ? v * 10 + (unsigned)(c - '0') : 1000000000u;
    *out = (uint32_t)v;
    return r->at > at;
}

uint32_t qsf_read_class(QsfReadText *r, bool any, void (*item)(QsfReadText *r, QsfCharset *s)) {
    const size_t at = r->at++;
    QsfCharset s = { 0 };
    const bool negated = qsf_read_take(r, '^');
    if (qsf_read_peek(r) == ']' && !(negated && any))
        qsf_read_fail(r, at, "the class is empty; write \\] for a bracket in it");
    while (!r->b->failed && !qsf_read_ended(r) && qsf_read_peek(r) != ']') item(r, &s);
    if (!qsf_read_take(r, ']')) qsf_read_fail(r, at, "the class is not closed: ] is missing");
    if (negated) qsf_charset_negate(&s);
    const uint32_t node = r->b->failed ? 0 : qsf_node_set(r->b, &s);
    qsf_charset_free(&s);
    return node;
}
