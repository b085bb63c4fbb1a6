/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Unified differences. The numbers of a hunk tell a removed "-- x" from the name of a file. */
#include "ui/code/scan.h"

/* In a hunk (UiCodeState.mode); count and more: lines of the old and the new file that are left in it. */
enum { OUTSIDE, HUNK };

static uint16_t number(const UiScan *s, size_t *n) {
    uint32_t v = 0;
    for (; ui_is_digit(ui_scan_peek(s, *n)); ++*n) {
        v = v * 10 + (uint32_t)(ui_scan_peek(s, *n) - '0');
        if (v > UINT16_MAX) v = UINT16_MAX;
    }
    return (uint16_t)v;
}

/* "12,5" or "12", which is one line: the number of lines. */
static uint16_t range(const UiScan *s, size_t *n) {
    (void)number(s, n);
    if (ui_scan_peek(s, *n) != ',') return 1;
    ++*n;
    return number(s, n);
}

/* "@@ -1,2 +3,4 @@ what is around it" */
static void hunk(UiScan *s) {
    size_t n = 4;
    if (ui_scan_is(s, "@@ -")) {
        s->st->mode = HUNK;
        s->st->count = range(s, &n);
        n += ui_scan_peek(s, n) == ' ';
        n += ui_scan_peek(s, n) == '+';
        s->st->more = range(s, &n);
    }
    ui_scan_take(s, 2, UI_CODE_HUNK);
    (void)ui_scan_through(s, "@@", UI_CODE_HUNK);
    ui_scan_rest(s, UI_CODE_TEXT);
}

static void less(uint16_t *n) { *n = *n > 0 ? (uint16_t)(*n - 1) : 0; }

static bool heads(const UiScan *s) {
    static const char *const begins[] = { "diff ",    "index ",       "--- ",        "+++ ",
                                          "new file", "deleted file", "similarity ", "rename ",
                                          "old mode", "new mode",     "Binary " };
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        if (ui_scan_is(s, begins[i])) return true;
    }
    return false;
}

static void line(UiScan *s) {
    UiCodeState *st = s->st;
    const char c = ui_scan_peek(s, 0);
    const bool in_hunk = st->mode == HUNK && (st->count > 0 || st->more > 0);
    if (ui_scan_is(s, "@@")) {
        hunk(s);
        return;
    }
    if (!in_hunk && heads(s)) {
        ui_scan_rest(s, UI_CODE_HUNK);
        return;
    }
    if (c != '+' && c != '\\') less(&st->count);
    if (c != '-' && c != '\\') less(&st->more);
    if (!in_hunk) st->mode = OUTSIDE, st->count = st->more = 0;
    ui_scan_rest(s, c == '+' || c == '>'   ? UI_CODE_ADDED
                    : c == '-' || c == '<' ? UI_CODE_REMOVED
                    : c == '\\'            ? UI_CODE_COMMENT
                                           : UI_CODE_TEXT);
}

const UiLexer ui_lexer_diff = { .names = "diff,patch,udiff", .line = line };
