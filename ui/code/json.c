/* SPDX-License-Identifier: GPL-3.0-or-later */
/* JSON, with the comments that some programs allow. */
#include "ui/code/scan.h"

static const char *const keywords[] = { "false", "null", "true" };

/* What a line begins in. */
enum { CODE, COMMENT };

static void comment(UiScan *s) { s->st->mode = ui_scan_through(s, "*/", UI_CODE_COMMENT) ? CODE : COMMENT; }

/* Length of the string at the cursor with its quotes, or the rest of the line. */
static size_t string_length(const UiScan *s) {
    size_t n = 1;
    for (; s->at + n < s->len; n++) {
        char c = s->s[s->at + n];
        if (c == '"') return n + 1;
        if (c == '\\') n++;
    }
    return s->len - s->at;
}

/* A string before a colon is a key. */
static void string(UiScan *s) {
    const size_t n = string_length(s);
    size_t next = n;
    while (ui_is_blank(ui_scan_peek(s, next))) next++;
    ui_scan_take(s, n, ui_scan_peek(s, next) == ':' ? UI_CODE_KEY : UI_CODE_STRING);
}

static void word(UiScan *s) {
    const size_t n = ui_scan_word(s, '\0');
    const bool known = ui_words_have(&s->x->keywords, s->s + s->at, n);
    ui_scan_take(s, n, known ? UI_CODE_KEYWORD : UI_CODE_TEXT);
}

static void code(UiScan *s) {
    const char c = ui_scan_peek(s, 0);
    if (c == '"') {
        string(s);
    } else if (ui_is_digit(c) || (c == '-' && ui_is_digit(ui_scan_peek(s, 1)))) {
        size_t sign = c == '-';
        ui_scan_take(s, sign, UI_CODE_NUMBER);
        ui_scan_take(s, ui_scan_number(s), UI_CODE_NUMBER);
    } else if (ui_is_word(c)) {
        word(s);
    } else if (ui_scan_is(s, "//")) {
        ui_scan_rest(s, UI_CODE_COMMENT);
    } else if (ui_scan_is(s, "/*")) {
        ui_scan_take(s, 2, UI_CODE_COMMENT);
        comment(s);
    } else {
        ui_scan_take(s, 1, UI_CODE_TEXT);
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

const UiLexer ui_lexer_json = {
    .names = "json,jsonc,json5,jsonl,ndjson,geojson",
    .line = line,
    .keywords = UI_WORDS(keywords),
};
