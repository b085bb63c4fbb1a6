/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rewrites numbers so that a parser with 64-bit integers and doubles can read them. */
#include "src/base/jsonnumber.h"

#include <math.h>
#include <string.h>

#include "src/base/jsonscan.h"

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

bool qsf_json_numbers(const char *text, size_t len, QsfStrbuf *out) {
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
