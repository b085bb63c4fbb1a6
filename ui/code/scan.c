/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A cursor over one line of code, and tables of words. */
#include "ui/code/scan.h"

#include <string.h>

void ui_scan_take(UiScan *s, size_t len, UiCodeClass kind) {
    if (len > s->len - s->at) len = s->len - s->at;
    if (len == 0) return;
    UiCodeRun *last = s->n > 0 ? &s->runs[s->n - 1] : NULL;
    if (last && (last->kind == kind || s->n == s->max)) {
        last->len += len;
    } else {
        if (s->n + 1 == s->max) kind = UI_CODE_TEXT; /* it may have to hold the rest of the line */
        if (last && last->kind == kind)
            last->len += len;
        else
            s->runs[s->n++] = (UiCodeRun){ s->at, len, kind };
    }
    s->at += len;
}

void ui_scan_take_to(UiScan *s, size_t end, UiCodeClass kind) {
    if (end > s->at) ui_scan_take(s, end - s->at, kind);
}

void ui_scan_rest(UiScan *s, UiCodeClass kind) { ui_scan_take(s, s->len - s->at, kind); }

void ui_scan_blanks(UiScan *s) {
    size_t n = 0;
    while (ui_is_blank(ui_scan_peek(s, n))) n++;
    ui_scan_take(s, n, UI_CODE_TEXT);
}

void ui_scan_bracket(UiScan *s, char c) {
    uint8_t *depth = &s->st->depth;
    if ((c == '[' || c == '{') && *depth < UINT8_MAX) ++*depth;
    if ((c == ']' || c == '}') && *depth > 0) --*depth;
    ui_scan_take(s, 1, UI_CODE_TEXT);
}

size_t ui_scan_word(const UiScan *s, char more) {
    size_t n = 0;
    for (char c; (c = ui_scan_peek(s, n)) != '\0' && (ui_is_word(c) || c == more);) n++;
    return n;
}

/* A point belongs to the number unless a range (0..9) or a method (1.max(x)) follows. */
static bool is_point(const UiScan *s, size_t n) {
    char next = ui_scan_peek(s, n + 1);
    return next != '.' && next != '_' && (!ui_is_alpha(next) || (next | 0x20) == 'e' || (next | 0x20) == 'f');
}

static bool is_exponent(const UiScan *s, size_t n, bool hex) {
    char c = (char)(ui_scan_peek(s, n - 1) | 0x20), sign = ui_scan_peek(s, n);
    return (sign == '+' || sign == '-') && c == (hex ? 'p' : 'e') && ui_is_digit(ui_scan_peek(s, n + 1));
}

size_t ui_scan_number(const UiScan *s) {
    const bool hex = ui_scan_peek(s, 0) == '0' && (ui_scan_peek(s, 1) | 0x20) == 'x';
    size_t n = 1;
    for (;; n++) {
        char c = ui_scan_peek(s, n);
        if (ui_is_digit(c) || ui_is_alpha(c) || c == '_') continue;
        if (c == '\'' && ui_is_digit(ui_scan_peek(s, n + 1))) continue;
        if (c == '.' && is_point(s, n)) continue;
        if (!is_exponent(s, n, hex)) return n;
    }
}

size_t ui_scan_find(const UiScan *s, const char *text) {
    const size_t n = strlen(text);
    for (size_t at = s->at; at + n <= s->len; at++) {
        const char *p = memchr(s->s + at, text[0], s->len - at - n + 1);
        if (!p) break;
        at = (size_t)(p - s->s);
        if (memcmp(p, text, n) == 0) return at;
    }
    return s->len;
}

bool ui_scan_is(const UiScan *s, const char *text) {
    const size_t n = strlen(text);
    return n <= s->len - s->at && memcmp(s->s + s->at, text, n) == 0;
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

bool ui_scan_is_nocase(const UiScan *s, const char *text) {
    size_t n = 0;
    while (text[n] && lower(ui_scan_peek(s, n)) == text[n]) n++;
    return text[n] == '\0';
}

bool ui_scan_string(UiScan *s, char quote, char escape, bool *escaped) {
    size_t at = s->at;
    bool skip = false, found = false;
    for (; at < s->len && !found; at++) {
        char c = s->s[at];
        found = !skip && c == quote;
        skip = !skip && escape != '\0' && c == escape;
    }
    if (escaped) *escaped = skip;
    ui_scan_take_to(s, at, UI_CODE_STRING);
    return found;
}

bool ui_scan_through(UiScan *s, const char *end, UiCodeClass kind) {
    size_t at = ui_scan_find(s, end);
    const bool found = at < s->len;
    ui_scan_take_to(s, found ? at + strlen(end) : at, kind);
    return found;
}

bool ui_words_have(const UiWords *w, const char *word, size_t len) {
    size_t low = 0, high = w->n;
    if (memchr(word, '\0', len)) return false; /* strncmp would end there */
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = strncmp(w->words[mid], word, len);
        if (c == 0) c = w->words[mid][len] != '\0';
        if (c == 0) return true;
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

bool ui_words_have_nocase(const UiWords *w, const char *word, size_t len) {
    char copy[32];
    if (len >= sizeof copy) return false;
    for (size_t i = 0; i < len; i++) copy[i] = lower(word[i]);
    return ui_words_have(w, copy, len);
}

/* FNV-1a. A text with the same hash would only end a string too early. */
uint32_t ui_scan_tag(const char *text, size_t len) {
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h ? h : 1;
}
