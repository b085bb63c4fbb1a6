/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Implements ui/search.h. */
#include "ui/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool push(UiSearch *s, uint32_t item, size_t off) {
    if (s->n == UI_MATCHES_MAX) return false;
    if (s->n == s->cap) {
        const size_t cap = s->cap ? s->cap * 2 : 64;
        UiMatch *all = realloc(s->all, cap * sizeof *all);
        if (!all) return false;
        s->all = all;
        s->cap = cap;
    }
    s->all[s->n++] = (UiMatch){ item, off };
    return true;
}

/* Only messages: output of commands, such as that of /search, does not count. */
static bool is_searched(const UiItem *it) { return it->kind == UI_USER || it->kind == UI_ANSWER; }

/* Line by line, so that ^ and $ mean what they do elsewhere, and one expression cannot take long. */
static void find_in(UiSearch *s, const UiItem *it) {
    size_t len = 0, line = 0;
    const char *text = ui_item_shown(it, &len);
    while (line < len) {
        const char *nl = memchr(text + line, '\n', len - line);
        const size_t n = nl ? (size_t)(nl - text) - line : len - line;
        size_t at = 0, begin, end;
        while (at <= n && qsf_search_find(s->search, text + line, n, at, &begin, &end)) {
            if (!push(s, it->id, line + begin)) return;
            at = end > begin ? end : end + 1;
        }
        line += n + 1;
    }
}

/* Changes whenever the texts do. */
static uint32_t state_of(const UiTranscript *t) {
    uint32_t sum = (uint32_t)t->n;
    for (size_t i = 0; i < t->n; i++) sum = sum * 31 + t->items[i]->id * 7 + t->items[i]->version;
    return sum;
}

static void find_all(UiSearch *s, const UiTranscript *t) {
    s->n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (is_searched(t->items[i])) find_in(s, t->items[i]);
    s->seen = state_of(t);
}

bool ui_search_start(UiSearch *s, const UiTranscript *t, const char *pattern, char *err, size_t cap) {
    UiSearch next = { .search = qsf_search_new(pattern, err, cap) };
    if (!next.search) return false;
    ui_buf_puts(&next.pattern, pattern);
    find_all(&next, t);
    if (next.n == 0) {
        (void)snprintf(err, cap, "not found: %.200s", pattern);
        ui_search_end(&next);
        return false;
    }
    next.at = next.n - 1;
    ui_search_end(s);
    *s = next;
    return true;
}

void ui_search_refresh(UiSearch *s, const UiTranscript *t) {
    if (!s->search || s->seen == state_of(t)) return;
    const UiMatch old = s->n > 0 ? s->all[s->at] : (UiMatch){ 0 };
    find_all(s, t);
    size_t at = 0;
    while (at + 1 < s->n &&
           (s->all[at].item < old.item || (s->all[at].item == old.item && s->all[at].off < old.off)))
        at++;
    s->at = at;
}

const UiMatch *ui_search_step(UiSearch *s, int by) {
    if (s->n == 0) return NULL;
    s->at = by < 0 ? (s->at + s->n - 1) % s->n : (s->at + 1) % s->n;
    return &s->all[s->at];
}

const UiMatch *ui_search_at(const UiSearch *s) { return s->n > 0 ? &s->all[s->at] : NULL; }

static const UiItem *item_of(const UiTranscript *t, uint32_t id) {
    for (size_t i = 0; i < t->n; i++)
        if (t->items[i]->id == id) return t->items[i];
    return NULL;
}

void ui_search_lines(const UiSearch *s, const UiTranscript *t, UiBuf *out) {
    const UiItem *it = NULL;
    size_t end = 0; /* of the line that was appended last */
    for (size_t i = 0; i < s->n; i++) {
        const bool same = it && it->id == s->all[i].item;
        if (!same) it = item_of(t, s->all[i].item);
        if (!it || (same && s->all[i].off <= end)) continue;
        size_t len = 0, from = s->all[i].off;
        const char *text = ui_item_shown(it, &len);
        while (from > 0 && text[from - 1] != '\n') from--;
        const char *nl = memchr(text + s->all[i].off, '\n', len - s->all[i].off);
        end = nl ? (size_t)(nl - text) : len;
        ui_buf_puts(out, out->len > 0 ? "\n" : "");
        if (it->number > 0)
            ui_buf_printf(out, "#%u", it->number);
        else
            ui_buf_puts(out, "summary");
        ui_buf_printf(out, "  %.*s", (int)(end - from), text + from);
    }
}

static void mark_row(QSFSearch *s, UiCell *cells, int width, UiBuf *text) {
    size_t from = 0, begin, end;
    ui_buf_clear(text);
    while (width > 0 && cells[width - 1].len == 1 && cells[width - 1].text[0] == ' ') width--; /* for $ */
    for (int i = 0; i < width; i++) ui_buf_add(text, cells[i].text, cells[i].len);
    while (from < text->len && qsf_search_find(s, text->data, text->len, from, &begin, &end)) {
        size_t at = 0;
        for (int i = 0; i < width && at < end; at += cells[i++].len)
            if (at + cells[i].len > begin) cells[i].ink.style = UI_STYLE_MATCH;
        from = end > begin ? end : end + 1;
    }
}

void ui_search_mark(QSFSearch *s, UiCanvas *c, int row, int n, int width) {
    UiBuf text = { 0 };
    if (width > c->cols) width = c->cols;
    for (int i = row; s && i < row + n && i < c->rows; i++)
        mark_row(s, c->cells + (size_t)i * (size_t)c->cols, width, &text);
    ui_buf_free(&text);
}

void ui_search_end(UiSearch *s) {
    qsf_search_free(s->search);
    ui_buf_free(&s->pattern);
    free(s->all);
    *s = (UiSearch){ 0 };
}
