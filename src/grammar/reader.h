/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the readers of GBNF and of regular expressions: a place in the text, escapes. */
#ifndef QSF_GRAMMAR_READER_H
#define QSF_GRAMMAR_READER_H

#include "src/grammar/build.h"

typedef struct QsfReadText {
    QsfGrammarBuild *b;
    const char *text; /* valid UTF-8 */
    size_t len, at;
    uint32_t depth;
    bool lines;      /* places are told as line and column, not as a number of characters */
    size_t place_at; /* the last place that was asked for */
    uint32_t place_line, place_col;
} QsfReadText;

/* Records a failure with the place of byte `at`. Returns 0. */
uint32_t qsf_read_fail(QsfReadText *r, size_t at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Line and column, from 1, of byte `at`. */
void qsf_read_place(QsfReadText *r, size_t at, uint32_t *line, uint32_t *col);
/* The next byte, 0 at the end. */
static inline char qsf_read_peek(const QsfReadText *r) { return r->at < r->len ? r->text[r->at] : '\0'; }
static inline bool qsf_read_ended(const QsfReadText *r) { return r->at >= r->len; }
/* Takes c if it is next. */
static inline bool qsf_read_take(QsfReadText *r, char c) {
    if (qsf_read_ended(r) || r->text[r->at] != c) return false;
    r->at++;
    return true;
}
/* Takes the next code point; there is one. */
uint32_t qsf_read_code(QsfReadText *r);
/* Takes n hexadecimal digits. what: the escape, for the message. */
uint32_t qsf_read_hex(QsfReadText *r, unsigned n, const char *what);
/* Takes decimal digits; false if there are none. Numbers above 10^9 are 10^9. */
bool qsf_read_number(QsfReadText *r, uint32_t *out);
/* Takes a class, [...] or [^...], whose items the function item adds to the set. any: [^] is all characters.
 * Returns its node. */
uint32_t qsf_read_class(QsfReadText *r, bool any, void (*item)(QsfReadText *r, QsfCharset *s));

#endif
