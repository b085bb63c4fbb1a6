/* SPDX-License-Identifier: GPL-3.0-or-later */
/* TOML, INI and other files of NAME = VALUE. */
#include <string.h>

#include "ui/code/scan.h"

static const char *const keywords[] = { "false", "inf", "nan", "no", "off", "on", "true", "yes" };

/* What a line begins in. depth: open brackets of a value. */
enum { CODE, STRING }; /* flag: its quote; of three of them */

static void long_string(UiScan *s) {
    const char quote = (char)s->st->flag, two[3] = { quote, quote, '\0' };
    bool closed = false;
    while (!ui_scan_end(s) && !closed)
        closed = ui_scan_string(s, quote, quote == '"' ? '\\' : '\0', NULL) && ui_scan_is(s, two);
    if (closed) ui_scan_take(s, 2, UI_CODE_STRING);
    s->st->mode = closed ? CODE : STRING;
    if (closed) s->st->flag = 0;
}

static void string(UiScan *s, char quote) {
    if (ui_scan_peek(s, 1) == quote && ui_scan_peek(s, 2) == quote) {
        s->st->flag = (uint8_t)quote;
        ui_scan_take(s, 3, UI_CODE_STRING);
        long_string(s);
        return;
    }
    ui_scan_take(s, 1, UI_CODE_STRING);
    (void)ui_scan_string(s, quote, quote == '"' ? '\\' : '\0', NULL);
}

/* Position of the = or : of the line, s->len if it has none. In quotes it is a part of the name. */
static size_t equals(const UiScan *s) {
    char quote = '\0';
    for (size_t at = s->at; at < s->len; at++) {
        char c = s->s[at];
        if (quote) {
            if (c == quote) quote = '\0';
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '=' || c == ':') {
            return at;
        } else if (c == '#' || c == ';') {
            break;
        }
    }
    return s->len;
}

/* Numbers, dates and times. */
static size_t number_length(const UiScan *s) {
    UiScan rest = *s;
    for (;;) {
        rest.at += ui_scan_number(&rest);
        const char c = ui_scan_peek(&rest, 0);
        if ((c != '-' && c != ':') || !ui_is_digit(ui_scan_peek(&rest, 1))) return rest.at - s->at;
        rest.at++;
    }
}

static void value(UiScan *s) {
    const char c = ui_scan_peek(s, 0);
    const size_t n = ui_scan_word(s, '-');
    if ((c == '#' || c == ';') && (s->at == 0 || ui_is_blank(ui_scan_before(s))))
        ui_scan_rest(s, UI_CODE_COMMENT);
    else if (c == '"' || c == '\'')
        string(s, c);
    else if (ui_is_digit(c))
        ui_scan_take(s, number_length(s), UI_CODE_NUMBER);
    else if (n > 0)
        ui_scan_take(s, n, ui_words_have(&s->x->keywords, s->s + s->at, n) ? UI_CODE_KEYWORD : UI_CODE_TEXT);
    else
        ui_scan_bracket(s, c);
}

/* [section], comment or name. */
static void begin(UiScan *s) {
    ui_scan_blanks(s);
    const char c = ui_scan_peek(s, 0);
    if (c == '#' || c == ';' || c == '!') {
        ui_scan_rest(s, UI_CODE_COMMENT);
    } else if (c == '[') {
        size_t end = s->len;
        while (end > s->at && s->s[end - 1] != ']') end--;
        ui_scan_take_to(s, end, UI_CODE_TYPE);
    } else {
        size_t at = equals(s), end = at;
        while (end > s->at && ui_is_blank(s->s[end - 1])) end--;
        if (at < s->len) ui_scan_take_to(s, end, UI_CODE_KEY);
        if (at < s->len) ui_scan_take_to(s, at + 1, UI_CODE_TEXT);
    }
}

static void line(UiScan *s) {
    if (s->st->mode == STRING)
        long_string(s);
    else if (s->st->depth == 0)
        begin(s);
    while (!ui_scan_end(s)) value(s);
}

const UiLexer ui_lexer_toml = {
    .names = "toml,ini,cfg,conf,config,dosini,properties,env,dotenv,editorconfig,desktop,systemd",
    .line = line,
    .keywords = UI_WORDS(keywords),
};
