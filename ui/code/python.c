/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Python. */
#include <string.h>

#include "ui/code/scan.h"

/* clang-format off */
static const char *const keywords[] = {
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
};
/* clang-format on */

static const char *const types[] = { "bool",      "bytearray", "bytes", "complex",    "dict",   "float",
                                     "frozenset", "int",       "list",  "memoryview", "object", "range",
                                     "set",       "str",       "super", "tuple",      "type" };

/* What a line begins in. */
enum { CODE, STRING, LONG_STRING }; /* flag: its quote */

/* With three quotes, to three of them. */
static void long_string(UiScan *s) {
    const char two[3] = { (char)s->st->flag, (char)s->st->flag, '\0' };
    bool closed = false;
    while (!ui_scan_end(s) && !closed) closed = ui_scan_string(s, two[0], '\\', NULL) && ui_scan_is(s, two);
    if (closed) ui_scan_take(s, 2, UI_CODE_STRING);
    s->st->mode = closed ? CODE : LONG_STRING;
    if (closed) s->st->flag = 0;
}

static void string(UiScan *s) {
    bool escaped = false;
    const bool closed = ui_scan_string(s, (char)s->st->flag, '\\', &escaped);
    s->st->mode = !closed && escaped ? STRING : CODE;
    if (s->st->mode == CODE) s->st->flag = 0;
}

/* prefix: bytes before the quote. */
static void open_string(UiScan *s, size_t prefix) {
    const char quote = ui_scan_peek(s, prefix);
    const bool three = ui_scan_peek(s, prefix + 1) == quote && ui_scan_peek(s, prefix + 2) == quote;
    s->st->flag = (uint8_t)quote;
    ui_scan_take(s, prefix + (three ? 3 : 1), UI_CODE_STRING);
    if (three)
        long_string(s);
    else
        string(s);
}

static bool is_quote(char c) { return c == '"' || c == '\''; }

/* match and case are keywords only where they begin a line that ends with a colon. */
static bool is_soft(const UiScan *s, const char *word, size_t n) {
    static const char *const soft[] = { "case", "match" };
    static const UiWords words = UI_WORDS(soft);
    return s->len > 0 && s->s[s->len - 1] == ':' && ui_scan_peek(s, n) == ' ' &&
           (s->n == 0 || (s->n == 1 && s->at < 64 && ui_is_blank(s->s[s->at - 1]))) &&
           ui_words_have(&words, word, n);
}

static bool is_prefix(const char *word, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!strchr("rRbBfFuUtT", word[i])) return false;
    }
    return n <= 2;
}

static void name(UiScan *s) {
    const size_t n = ui_scan_word(s, '\0');
    const char *p = s->s + s->at;
    if (is_quote(ui_scan_peek(s, n)) && is_prefix(p, n)) {
        open_string(s, n);
        return;
    }
    const bool member = ui_scan_before(s) == '.', after_class = s->keyword > 0 && s->flag;
    s->flag = false;
    if (!member && (ui_words_have(&s->x->keywords, p, n) || is_soft(s, p, n))) {
        ui_scan_take(s, n, UI_CODE_KEYWORD);
        s->flag = n == 5 && memcmp(p, "class", 5) == 0;
        s->keyword = s->at;
    } else if (after_class || (!member && ui_words_have(&s->x->types, p, n))) {
        ui_scan_take(s, n, UI_CODE_TYPE);
    } else {
        ui_scan_take(s, n, ui_scan_peek(s, n) == '(' ? UI_CODE_FUNCTION : UI_CODE_TEXT);
    }
}

/* @name at the beginning of a line; elsewhere it multiplies matrices. */
static void at_sign(UiScan *s) {
    size_t n = 1, before = 0;
    while (before < s->at && ui_is_blank(s->s[before])) before++;
    while (before == s->at && (ui_is_word(ui_scan_peek(s, n)) || ui_scan_peek(s, n) == '.')) n++;
    ui_scan_take(s, n, n > 1 ? UI_CODE_DIRECTIVE : UI_CODE_TEXT);
}

static void code(UiScan *s) {
    const char c = ui_scan_peek(s, 0);
    if (ui_is_digit(c) || (c == '.' && ui_is_digit(ui_scan_peek(s, 1))))
        ui_scan_take(s, ui_scan_number(s), UI_CODE_NUMBER);
    else if (ui_is_word(c))
        name(s);
    else if (is_quote(c))
        open_string(s, 0);
    else if (c == '#')
        ui_scan_rest(s, UI_CODE_COMMENT);
    else if (c == '@')
        at_sign(s);
    else
        ui_scan_take(s, 1, UI_CODE_TEXT);
}

static void line(UiScan *s) {
    static void (*const modes[])(
        UiScan *) = { [CODE] = code, [STRING] = string, [LONG_STRING] = long_string };
    if (s->st->mode == STRING && s->len == 0) *s->st = (UiCodeState){ 0 };
    while (!ui_scan_end(s)) modes[s->st->mode](s);
}

const UiLexer ui_lexer_python = {
    .names = "python,py,python3,py3,pyi,starlark,bzl",
    .line = line,
    .keywords = UI_WORDS(keywords),
    .types = UI_WORDS(types),
};
