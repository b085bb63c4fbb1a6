/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makefiles: targets, variables, conditions and the references in them. */
#include <string.h>

#include "ui/code/scan.h"

static const char *const keywords[] = { "define",   "else",     "endef",    "endif",   "export",   "ifdef",
                                        "ifeq",     "ifndef",   "ifneq",    "include", "override", "private",
                                        "sinclude", "undefine", "unexport", "vpath" };

/* flag: the line continues the one before it. */

/* $(x), ${x}, $@ and $$x; those in each other are one. */
static void reference(UiScan *s) {
    const char open = ui_scan_peek(s, 1), close = open == '(' ? ')' : '}';
    size_t n = 2, depth = 1;
    if (open != '(' && open != '{') {
        ui_scan_take(s, open == '\0' ? 1 : 2, UI_CODE_KEY);
        return;
    }
    for (; depth > 0 && s->at + n < s->len; n++) {
        depth += ui_scan_peek(s, n) == open;
        depth -= ui_scan_peek(s, n) == close;
    }
    ui_scan_take(s, n, UI_CODE_KEY);
}

/* Text with references up to position end, and a comment if there may be one. */
static void text(UiScan *s, size_t end, UiCodeClass kind, bool comments) {
    while (s->at < end) {
        const char c = ui_scan_peek(s, 0);
        if (c == '$')
            reference(s);
        else if (comments && c == '#' && ui_scan_before(s) != '\\')
            ui_scan_rest(s, UI_CODE_COMMENT);
        else
            ui_scan_take(s, 1, kind);
    }
}

/* What a line without a tab defines: the end of the name of a variable or of the targets, 0 = nothing. */
static size_t defined(const UiScan *s, UiCodeClass *kind) {
    size_t depth = 0;
    for (size_t at = s->at; at < s->len && s->s[at] != '#'; at++) {
        const char c = s->s[at], next = at + 1 < s->len ? s->s[at + 1] : '\0';
        if (c == '(' || c == '{') depth++;
        if ((c == ')' || c == '}') && depth > 0) depth--;
        if (depth > 0) continue;
        *kind = c == '=' || (strchr("?+!:", c) && next == '=') ||
                        (c == ':' && next == ':' && at + 2 < s->len && s->s[at + 2] == '=')
                    ? UI_CODE_KEY
                    : UI_CODE_FUNCTION;
        if (*kind == UI_CODE_KEY || c == ':') return at;
    }
    return 0;
}

static void rule(UiScan *s) {
    UiCodeClass kind = UI_CODE_TEXT;
    ui_scan_blanks(s);
    const size_t n = ui_scan_word(s, '-');
    if (n > 0 && ui_words_have(&s->x->keywords, s->s + s->at, n)) {
        ui_scan_take(s, n, UI_CODE_KEYWORD);
        ui_scan_blanks(s);
    } else if (ui_scan_peek(s, 0) == '-' && ui_scan_is(s, "-include")) {
        ui_scan_take(s, 8, UI_CODE_KEYWORD);
    }
    size_t end = defined(s, &kind);
    while (end > s->at && ui_is_blank(s->s[end - 1])) end--;
    text(s, end, kind, false);
    text(s, s->len, UI_CODE_TEXT, true);
}

static void line(UiScan *s) {
    const bool goes_on = s->st->flag != 0, recipe = s->len > 0 && s->s[0] == '\t';
    s->st->flag = s->len > 0 && s->s[s->len - 1] == '\\';
    if (goes_on || recipe)
        text(s, s->len, UI_CODE_TEXT, true);
    else
        rule(s);
}

const UiLexer ui_lexer_make = {
    .names = "makefile,make,mk,gnumake,bsdmake",
    .line = line,
    .keywords = UI_WORDS(keywords),
};
