/* SPDX-License-Identifier: GPL-3.0-or-later */
/* YAML: keys, scalars in blocks, quotes and flows. */
#include <string.h>

#include "ui/code/scan.h"

static const char *const keywords[] = { "false", "no", "null", "off", "on", "true", "yes" };

/* What a line begins in. */
enum {
    CODE,
    BLOCK, /* after | or >; count: the indentation of its key, and of its text something more */
    STRING /* flag: its quote */
};

static size_t indentation(const UiScan *s) {
    size_t n = 0;
    while (n < s->len && s->s[n] == ' ') n++;
    return n;
}

static bool is_blank_end(char c) { return c == '\0' || ui_is_blank(c); }

static void string(UiScan *s) {
    const char quote = (char)s->st->flag;
    const bool closed = ui_scan_string(s, quote, quote == '"' ? '\\' : '\0', NULL);
    s->st->mode = closed ? CODE : STRING;
    if (closed) s->st->flag = 0;
}

/* Length of a plain scalar; *key: a colon follows it. In a flow, it ends at a comma or a bracket. */
static size_t scalar(const UiScan *s, bool flow, bool *key) {
    size_t n = 0;
    *key = false;
    for (; s->at + n < s->len; n++) {
        char c = ui_scan_peek(s, n);
        *key = c == ':' && (is_blank_end(ui_scan_peek(s, n + 1)) || (flow && ui_scan_peek(s, n + 1) == ','));
        if (*key || (c == '#' && n > 0 && ui_is_blank(ui_scan_peek(s, n - 1)))) break;
        if (flow && strchr(",[]{}", c)) break;
    }
    while (n > 0 && ui_is_blank(ui_scan_peek(s, n - 1))) n--;
    return n;
}

/* Numbers, dates and versions: digits and what is between them. */
static bool is_number(const char *p, size_t n) {
    bool digit = false;
    size_t i = n > 1 && (p[0] == '-' || p[0] == '+');
    if (n - i > 2 && p[i] == '0' && (p[i + 1] | 0x20) == 'x') return true;
    for (; i < n; i++) {
        if (!ui_is_digit(p[i]) && !strchr(".:-+_eE", p[i])) return false;
        digit = digit || ui_is_digit(p[i]);
    }
    return digit;
}

static void plain(UiScan *s) {
    bool key;
    const size_t n = scalar(s, s->st->depth > 0, &key);
    const char *p = s->s + s->at;
    if (n == 0)
        ui_scan_take(s, 1, UI_CODE_TEXT);
    else if (key)
        ui_scan_take(s, n, UI_CODE_KEY);
    else if (ui_words_have_nocase(&s->x->keywords, p, n) || (n == 1 && *p == '~'))
        ui_scan_take(s, n, UI_CODE_KEYWORD);
    else
        ui_scan_take(s, n, is_number(p, n) ? UI_CODE_NUMBER : UI_CODE_STRING);
}

/* "quoted": a key if a colon follows. */
static void quoted(UiScan *s, char quote) {
    const size_t n = s->n;
    const bool first = s->n == 0 || s->runs[s->n - 1].kind == UI_CODE_TEXT;
    s->st->flag = (uint8_t)quote;
    ui_scan_take(s, 1, UI_CODE_STRING);
    string(s);
    if (s->st->mode == CODE && ui_scan_peek(s, 0) == ':' && first && s->n == n + 1)
        s->runs[n].kind = n + 1 == s->max ? UI_CODE_TEXT : UI_CODE_KEY;
}

/* | or > with their modifiers at the end of a line: the lines with more indentation are text. */
static bool block(UiScan *s) {
    size_t n = 1;
    while (ui_scan_peek(s, n) == '-' || ui_scan_peek(s, n) == '+' || ui_is_digit(ui_scan_peek(s, n))) n++;
    size_t end = n;
    while (ui_is_blank(ui_scan_peek(s, end))) end++;
    if (s->at + end < s->len && ui_scan_peek(s, end) != '#') return false;
    size_t in = indentation(s);
    s->st->mode = BLOCK;
    s->st->count = (uint16_t)(in < UINT16_MAX ? in : UINT16_MAX);
    ui_scan_take(s, n, UI_CODE_KEYWORD);
    return true;
}

/* &anchor, *alias and !tag */
static void mark(UiScan *s) {
    size_t n = 1;
    while (!is_blank_end(ui_scan_peek(s, n)) && !strchr(",[]{}", ui_scan_peek(s, n))) n++;
    ui_scan_take(s, n, UI_CODE_DIRECTIVE);
}

static void code(UiScan *s) {
    const char c = ui_scan_peek(s, 0), next = ui_scan_peek(s, 1);
    if (ui_is_blank(c))
        ui_scan_blanks(s);
    else if (c == '#')
        ui_scan_rest(s, UI_CODE_COMMENT);
    else if (c == '"' || c == '\'')
        quoted(s, c);
    else if (c == '[' || c == ']' || c == '{' || c == '}')
        ui_scan_bracket(s, c);
    else if (((c == '-' || c == '?') && is_blank_end(next)) || c == ',' || c == ':')
        ui_scan_take(s, 1, UI_CODE_TEXT);
    else if (c == '&' || c == '*' || c == '!')
        mark(s);
    else if ((c != '|' && c != '>') || !block(s))
        plain(s);
}

static void line(UiScan *s) {
    const size_t in = indentation(s);
    if (s->st->mode == BLOCK && (in > s->st->count || in == s->len)) {
        ui_scan_rest(s, UI_CODE_STRING);
        return;
    }
    if (s->st->mode == BLOCK) s->st->mode = CODE, s->st->count = 0;
    if (ui_scan_is(s, "---") || ui_scan_is(s, "...") || ui_scan_is(s, "%")) {
        *s->st = (UiCodeState){ 0 };
        ui_scan_take(s, s->s[0] == '%' ? s->len : 3, UI_CODE_DIRECTIVE);
    }
    while (!ui_scan_end(s)) {
        if (s->st->mode == STRING)
            string(s);
        else
            code(s);
    }
}

const UiLexer ui_lexer_yaml = { .names = "yaml,yml", .line = line, .keywords = UI_WORDS(keywords) };
