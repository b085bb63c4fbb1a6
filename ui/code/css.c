/* SPDX-License-Identifier: GPL-3.0-or-later */
/* CSS, and what its descendants add: line comments, variables, rules in rules. */
#include <string.h>

#include "ui/code/scan.h"

/* What a line begins in. depth: open braces; flag: after the colon of a property. UiScan.flag: after its
 * name. */
enum { CODE, COMMENT };

static void comment(UiScan *s) { s->st->mode = ui_scan_through(s, "*/", UI_CODE_COMMENT) ? CODE : COMMENT; }

static void slash(UiScan *s) {
    if (ui_scan_is(s, "/*")) {
        ui_scan_take(s, 2, UI_CODE_COMMENT);
        comment(s);
    } else if (ui_scan_is(s, "//") && (s->at == 0 || ui_is_blank(ui_scan_before(s)))) {
        ui_scan_rest(s, UI_CODE_COMMENT);
    } else {
        ui_scan_take(s, 1, UI_CODE_TEXT);
    }
}

/* A name before a colon in a block is a property, unless it is a selector (a:hover {): that is seen from what
 * comes first, as far as is looked. */
static bool is_property(const UiScan *s, size_t n) {
    for (size_t most = n + 2; n < most && ui_is_blank(ui_scan_peek(s, n)); n++) {
    }
    if (ui_scan_peek(s, n) != ':' || ui_scan_peek(s, n + 1) == ':') return false;
    for (size_t most = n + 200; n < most; n++) {
        char c = ui_scan_peek(s, n);
        if (c == '{') return false;
        if (c == ';' || c == '}' || c == '\0') break;
    }
    return true;
}

static void name(UiScan *s) {
    size_t n = ui_scan_word(s, '-');
    if (s->st->flag) {
        ui_scan_take(s, n, ui_scan_peek(s, n) == '(' ? UI_CODE_FUNCTION : UI_CODE_TEXT);
    } else if (s->st->depth > 0 && is_property(s, n)) {
        ui_scan_take(s, n, UI_CODE_KEY);
        s->flag = true;
    } else {
        ui_scan_take(s, n, UI_CODE_KEYWORD);
    }
}

/* .class and #id; colors after a colon. */
static void mark(UiScan *s) {
    size_t n = 1;
    while (ui_is_word(ui_scan_peek(s, n)) || ui_scan_peek(s, n) == '-') n++;
    ui_scan_take(s, n, n == 1 ? UI_CODE_TEXT : s->st->flag ? UI_CODE_NUMBER : UI_CODE_TYPE);
}

static void symbol(UiScan *s, char c) {
    UiCodeState *st = s->st;
    if (c == '{' && st->depth < UINT8_MAX) st->depth++;
    if (c == '}' && st->depth > 0) st->depth--;
    if (c == '{' || c == '}' || c == ';') st->flag = 0;
    if (c == ':' && s->flag) st->flag = 1;
    if (!ui_is_blank(c)) s->flag = false;
    ui_scan_take(s, 1, UI_CODE_TEXT);
}

static void code(UiScan *s) {
    const char c = ui_scan_peek(s, 0), next = ui_scan_peek(s, 1);
    size_t n = 1;
    if (c == '/') {
        slash(s);
    } else if (c == '"' || c == '\'') {
        ui_scan_take(s, 1, UI_CODE_STRING);
        (void)ui_scan_string(s, c, '\\', NULL); /* it ends with its line */
    } else if (c == '@' || c == '$') {
        while (ui_is_word(ui_scan_peek(s, n)) || ui_scan_peek(s, n) == '-') n++;
        ui_scan_take(s, n, UI_CODE_DIRECTIVE);
    } else if (ui_is_digit(c) || ((c == '.' || c == '-') && ui_is_digit(next))) {
        n += ui_scan_peek(s, 0) == '-' && ui_scan_peek(s, 1) == '.';
        while (ui_is_word(ui_scan_peek(s, n)) || ui_scan_peek(s, n) == '.' || ui_scan_peek(s, n) == '%') n++;
        ui_scan_take(s, n, UI_CODE_NUMBER);
    } else if (c == '.' || c == '#') {
        mark(s);
    } else if (ui_is_word(c) || (c == '-' && (next == '-' || ui_is_alpha(next)))) {
        name(s);
    } else {
        symbol(s, c);
    }
}

static void line(UiScan *s) {
    while (!ui_scan_end(s)) {
        if (s->st->mode == COMMENT)
            comment(s);
        else
            code(s);
    }
}

const UiLexer ui_lexer_css = { .names = "css,scss,less,sass", .line = line };
