/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Markdown as source: headings, fences, quotes, lists, and code in lines. */
#include <string.h>

#include "ui/code/scan.h"

/* What a line begins in: text, or a block of code; flag: the character of its fence, count: how many. */
enum { TEXT, FENCED };

/* Length of the fence at the cursor, 0 if it is none. */
static size_t fence(const UiScan *s, char c) {
    size_t n = 0;
    while (ui_scan_peek(s, n) == c) n++;
    return n >= 3 && n < UINT16_MAX ? n : 0;
}

static bool only_blanks(const UiScan *s, size_t n) {
    while (ui_is_blank(ui_scan_peek(s, n))) n++;
    return s->at + n >= s->len;
}

/* Only the fence ends it, indented as its list may be. */
static void fenced(UiScan *s) {
    UiScan after = *s;
    while (ui_is_blank(ui_scan_peek(&after, 0))) after.at++;
    const size_t n = fence(&after, (char)s->st->flag);
    const bool ends = n > 0 && n >= s->st->count && only_blanks(&after, n);
    ui_scan_rest(s, ends ? UI_CODE_DIRECTIVE : UI_CODE_STRING);
    if (ends) *s->st = (UiCodeState){ 0 };
}

/* Length of a fence that begins a block; in the line of one of backquotes there is no other. */
static size_t opens(const UiScan *s, char c) {
    const size_t n = c == '`' || c == '~' ? fence(s, c) : 0;
    return n > 0 && (c == '~' || !memchr(s->s + s->at + n, c, s->len - s->at - n)) ? n : 0;
}

/* `code`, with as many quotes after it as before it. UiScan.hint: no quote follows. */
static void code(UiScan *s) {
    size_t n = 0, run = 0;
    while (ui_scan_peek(s, n) == '`') n++;
    size_t end = s->hint || n > 8 ? s->len : s->at + n;
    for (; end < s->len && run != n; end++) {
        run = s->s[end] == '`' ? run + 1 : 0;
        if (run == n && end + 1 < s->len && s->s[end + 1] == '`') run = n + 1;
    }
    if (run != n) s->hint = true;
    ui_scan_take_to(s, run == n ? end : s->at + n, run == n ? UI_CODE_STRING : UI_CODE_TEXT);
}

/* *emphasis*, **strong**: only its marks are. */
static void marks(UiScan *s) {
    size_t n = 0;
    while (ui_scan_peek(s, n) == '*') n++;
    ui_scan_take(s, n,
                 n <= 3 && (!ui_is_blank(ui_scan_before(s)) || !ui_is_blank(ui_scan_peek(s, n)))
                     ? UI_CODE_KEYWORD
                     : UI_CODE_TEXT);
}

static void inside(UiScan *s) {
    while (!ui_scan_end(s)) {
        const char c = ui_scan_peek(s, 0);
        if (c == '`')
            code(s);
        else if (c == '*')
            marks(s);
        else
            ui_scan_take(s, c == '\\' ? 2 : 1, UI_CODE_TEXT);
    }
}

/* The mark of a list: "- ", "12. ". */
static size_t list_mark(const UiScan *s) {
    size_t n = 0;
    const char c = ui_scan_peek(s, 0);
    if (c == '-' || c == '*' || c == '+') return ui_scan_peek(s, 1) == ' ' ? 1 : 0;
    while (n < 9 && ui_is_digit(ui_scan_peek(s, n))) n++;
    if (n == 0 || (ui_scan_peek(s, n) != '.' && ui_scan_peek(s, n) != ')')) return 0;
    return ui_scan_peek(s, n + 1) == ' ' ? n + 1 : 0;
}

static void line(UiScan *s) {
    if (s->st->mode == FENCED) {
        fenced(s);
        return;
    }
    ui_scan_blanks(s);
    const char c = ui_scan_peek(s, 0);
    const size_t n = opens(s, c);
    if (n > 0) {
        *s->st = (UiCodeState){ .mode = FENCED, .flag = (uint8_t)c, .count = (uint16_t)n };
        ui_scan_rest(s, UI_CODE_DIRECTIVE);
    } else if (c == '#') {
        ui_scan_rest(s, UI_CODE_KEYWORD);
    } else if (c == '>') {
        ui_scan_rest(s, UI_CODE_COMMENT);
    } else {
        ui_scan_take(s, list_mark(s), UI_CODE_KEY);
        inside(s);
    }
}

const UiLexer ui_lexer_markdown = { .names = "markdown,md,mdx,rmd", .line = line };
