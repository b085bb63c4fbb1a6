/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Searching in the text of the pager. */
#include "ui/pager_find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/search.h"

#define TYPED_MAX 500 /* bytes of an expression */

void ui_pager_find_end(UiPagerFind *f) {
    qsf_search_free(f->search);
    ui_buf_free(&f->typed);
    free(f->all);
    *f = (UiPagerFind){ 0 };
}

void ui_pager_find_begin(UiPagerFind *f) {
    ui_pager_find_end(f);
    f->typing = true;
}

/* An empty expression searches for nothing. */
static void start(UiPagerFind *f) {
    f->typing = false;
    if (f->typed.len == 0) {
        ui_pager_find_end(f);
        return;
    }
    f->search = qsf_search_new(ui_buf_str(&f->typed), f->problem, sizeof f->problem);
    f->stale = f->go = f->search != NULL;
    f->at = SIZE_MAX;
}

static void remove_last(UiPagerFind *f) {
    if (f->typed.len == 0) {
        ui_pager_find_end(f);
        return;
    }
    size_t n = f->typed.len - 1;
    while (n > 0 && ((unsigned char)f->typed.data[n] & 0xc0) == 0x80) n--;
    f->typed.len = n;
    f->typed.data[n] = '\0';
}

static void type_key(UiPagerFind *f, const UiKey *k) {
    const unsigned char c = k->n == 1 ? (unsigned char)k->bytes[0] : 0;
    if (k->action == UI_DO_ESCAPE || k->action == UI_DO_STOP)
        ui_pager_find_end(f);
    else if (k->action == UI_DO_EDIT && c == '\r')
        start(f);
    else if (k->action == UI_DO_EDIT && (c == 0x7f || c == '\b'))
        remove_last(f);
    else if (k->action == UI_DO_EDIT && c == 0x15) /* ^U */
        ui_buf_clear(&f->typed);
    else if (k->action == UI_DO_EDIT && c >= ' ' && f->typed.len < TYPED_MAX)
        ui_buf_add(&f->typed, k->bytes, 1);
}

void ui_pager_find_paste(UiPagerFind *f, const char *text, size_t len) {
    for (size_t i = 0; i < len && f->typed.len < TYPED_MAX && (unsigned char)text[i] >= ' '; i++)
        if (text[i] != 0x7f) ui_buf_add(&f->typed, text + i, 1);
}

static void step(UiPagerFind *f, bool back) {
    if (f->n == 0) return;
    f->at = back ? (f->at + f->n - 1) % f->n : (f->at + 1) % f->n;
    f->go = true;
}

bool ui_pager_find_key(UiPagerFind *f, const UiKey *k) {
    if (f->typing) {
        type_key(f, k);
        return true;
    }
    if (f->typed.len == 0) return false;
    const char c = k->action == UI_DO_EDIT && k->n == 1 ? k->bytes[0] : '\0';
    if (c == 'n' || c == 'N')
        step(f, c == 'N');
    else if (k->action == UI_DO_ESCAPE)
        ui_pager_find_end(f);
    else
        return false;
    return true;
}

static bool push(UiPagerFind *f, size_t off) {
    if (f->n == UI_MATCHES_MAX) return false;
    if (f->n == f->cap) {
        const size_t cap = f->cap ? f->cap * 2 : 64;
        size_t *all = realloc(f->all, cap * sizeof *all);
        if (!all) return false;
        f->all = all;
        f->cap = cap;
    }
    f->all[f->n++] = off;
    return true;
}

/* Line by line, as in the conversation. */
static void find_all(UiPagerFind *f, const char *text, size_t len) {
    f->n = 0;
    for (size_t line = 0; line < len;) {
        const char *nl = memchr(text + line, '\n', len - line);
        const size_t n = nl ? (size_t)(nl - text) - line : len - line;
        size_t at = 0, begin, end;
        while (at <= n && qsf_search_find(f->search, text + line, n, at, &begin, &end)) {
            if (!push(f, line + begin)) return;
            at = end > begin ? end : end + 1;
        }
        line += n + 1;
    }
}

void ui_pager_find_update(UiPagerFind *f, const char *text, size_t len, size_t from) {
    if (!f->stale || !f->search) return;
    f->stale = false;
    find_all(f, text, len);
    if (f->at < f->n) return; /* the same text at another width */
    f->at = 0;
    while (f->at < f->n && f->all[f->at] < from) f->at++;
    if (f->at == f->n) f->at = 0;
    if (f->n == 0) (void)snprintf(f->problem, sizeof f->problem, "not found: %.200s", ui_buf_str(&f->typed));
}

bool ui_pager_find_draw(const UiPagerFind *f, UiCanvas *c, int row, int cols) {
    if (f->typing) {
        int at = ui_canvas_puts(c, row, 1, cols, UI_STYLE_KEY, "/");
        at = ui_canvas_puts(c, row, at, cols - 1, UI_STYLE_TEXT, ui_buf_str(&f->typed));
        c->cursor_row = row;
        c->cursor_col = at;
        return true;
    }
    if (f->typed.len == 0) return false;
    if (f->problem[0])
        ui_canvas_printf(c, row, 1, cols, UI_STYLE_ERROR, "%s  / searches again", f->problem);
    else
        ui_canvas_printf(c, row, 1, cols, UI_STYLE_NOTICE, "%zu/%zu %s  n N / Esc", f->at + 1, f->n,
                         ui_buf_str(&f->typed));
    return true;
}
