/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A list over the transcript to choose from. */
#include "ui/chooser.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "qsf_text.h"

#define FILTER_MAX 200 /* bytes */
#define NOTE_FROM  44  /* columns of a window whose last line has more than the position */

/* ---- filter ---- */

bool ui_words_occur(const char *text, const char *words) {
    for (const char *p = words; *p;) {
        const size_t n = strcspn(p, " ");
        const char *at = text;
        while (n > 0 && *at && strncasecmp(at, p, n) != 0) at++;
        if (n > 0 && !*at) return false;
        p += n + strspn(p + n, " ");
    }
    return true;
}

static void apply_filter(UiChooser *l, const UiChooserRows *rows) {
    UiBuf text = { 0 };
    l->n = 0;
    for (size_t i = 0; i < l->all; i++) {
        rows->text(rows->arg, i, &text);
        if (ui_words_occur(ui_buf_str(&text), ui_buf_str(&l->filter))) l->shown[l->n++] = i;
    }
    ui_buf_free(&text);
    if (l->chosen >= l->n) l->chosen = l->n > 0 ? l->n - 1 : 0;
}

static void filter_changed(UiChooser *l, const UiChooserRows *rows) {
    l->chosen = l->top = 0;
    apply_filter(l, rows);
}

bool ui_chooser_set(UiChooser *l, const UiChooserRows *rows, size_t all) {
    size_t *shown = malloc((all + 1) * sizeof *shown);
    free(l->shown);
    l->shown = shown;
    l->all = shown ? all : 0;
    apply_filter(l, rows);
    return shown != NULL;
}

void ui_chooser_free(UiChooser *l) {
    free(l->shown);
    ui_buf_free(&l->filter);
    *l = (UiChooser){ 0 };
}

size_t ui_chooser_row(const UiChooser *l) { return l->chosen < l->n ? l->shown[l->chosen] : SIZE_MAX; }

void ui_chooser_choose(UiChooser *l, size_t i) {
    for (size_t k = 0; k < l->n; k++)
        if (l->shown[k] == i) l->chosen = k;
}

/* ---- keys ---- */

static bool is_one_of(const UiKey *k, const char *a, const char *b) {
    return (k->n == strlen(a) && memcmp(k->bytes, a, k->n) == 0) ||
           (k->n == strlen(b) && memcmp(k->bytes, b, k->n) == 0);
}

static void move(UiChooser *l, long by) {
    const long last = l->n > 0 ? (long)l->n - 1 : 0, to = (long)l->chosen + by;
    l->chosen = (size_t)(to < 0 ? 0 : to > last ? last : to);
}

static void erase_character(UiChooser *l, const UiChooserRows *rows) {
    size_t len = l->filter.len;
    while (len > 0 && ((unsigned char)l->filter.data[len - 1] & 0xc0) == 0x80) len--;
    if (len > 0) len--;
    if (l->filter.len > 0) l->filter.data[l->filter.len = len] = '\0';
    filter_changed(l, rows);
}

/* Keys that move, or false. */
static bool key_moves(UiChooser *l, const UiKey *k, int height) {
    const long page = height > 4 ? height - 3 : 1;
    if (k->action == UI_DO_LINE_UP || is_one_of(k, "\x1b[A", "\x1bOA"))
        move(l, -1);
    else if (k->action == UI_DO_LINE_DOWN || is_one_of(k, "\x1b[B", "\x1bOB"))
        move(l, 1);
    else if (k->action == UI_DO_PAGE_UP)
        move(l, -page);
    else if (k->action == UI_DO_PAGE_DOWN)
        move(l, page);
    else if (k->action == UI_DO_HOME || is_one_of(k, "\x1b[H", "\x1bOH"))
        move(l, -(long)l->n);
    else if (k->action == UI_DO_END || is_one_of(k, "\x1b[F", "\x1bOF"))
        move(l, (long)l->n);
    else
        return false;
    return true;
}

static void key_edits(UiChooser *l, const UiChooserRows *rows, const UiKey *k) {
    const unsigned char c = k->n == 1 ? (unsigned char)k->bytes[0] : 0;
    if (c == 0x7f || c == 0x08) {
        erase_character(l, rows);
    } else if (c == 0x15) { /* ^U */
        ui_buf_clear(&l->filter);
        filter_changed(l, rows);
    } else if (c >= ' ' && l->filter.len < FILTER_MAX) {
        (void)ui_buf_add(&l->filter, k->bytes, 1);
        filter_changed(l, rows);
    }
}

UiChooserKey ui_chooser_key(UiChooser *l, const UiChooserRows *rows, const UiKey *k, int height) {
    if (k->action == UI_DO_REDRAW || key_moves(l, k, height)) return UI_CHOOSER_NOTHING;
    if (is_one_of(k, "\r", "\n")) return l->n > 0 ? UI_CHOOSER_TAKE : UI_CHOOSER_NOTHING;
    if (k->action == UI_DO_ESCAPE || k->action == UI_DO_STOP) return UI_CHOOSER_CLOSE;
    if (is_one_of(k, "\x1b[3~", "\x04")) return UI_CHOOSER_DELETE;
    if (k->action == UI_DO_EDIT) key_edits(l, rows, k);
    return UI_CHOOSER_NOTHING;
}

/* ---- drawing ---- */

int ui_chooser_right(UiCanvas *c, int row, int end, int cells, UiStyle style, const char *text) {
    const int w = (int)qsf_text_width(text, strlen(text));
    ui_canvas_puts(c, row, w < cells ? end - w : end - cells, end, style, text);
    return end - cells - 2;
}

static void draw_head(const UiChooser *l, const UiChooserRows *rows, UiCanvas *c, int row, int cols) {
    const int at = rows->head(rows->arg, c, row, cols);
    char *filter = qsf_clean_dup(ui_buf_str(&l->filter), l->filter.len, true);
    if (l->filter.len > 0)
        ui_canvas_printf(c, row, at + 2, cols, UI_STYLE_VALUE, "%s_", filter ? filter : "");
    else
        ui_canvas_puts(c, row, at + 2, cols, UI_STYLE_DIM, "type to filter");
    free(filter);
}

static void draw_foot(const UiChooser *l, const UiChooserRows *rows, UiCanvas *c, int row, int cols) {
    if (rows->foot && rows->foot(rows->arg, c, row, cols)) return;
    int at = ui_canvas_printf(c, row, 1, cols, UI_STYLE_NOTICE, "%zu of %zu", l->n > 0 ? l->chosen + 1 : 0,
                              l->n);
    if (l->n < l->all && cols >= NOTE_FROM)
        at = ui_canvas_printf(c, row, at, cols, UI_STYLE_NOTICE, " (%zu without the filter)", l->all);
    if (rows->note[0] && cols >= NOTE_FROM)
        at = ui_canvas_printf(c, row, at, cols, UI_STYLE_WARN, "  %s", rows->note);
    const int from = cols - (int)strlen(rows->hints) - 1;
    if (from > at + 1)
        ui_canvas_puts(c, row, from, cols, UI_STYLE_DIM, rows->hints);
    else
        ui_canvas_puts(c, row, at + 2, cols, UI_STYLE_DIM, "Enter Esc");
}

void ui_chooser_draw(UiChooser *l, const UiChooserRows *rows, UiCanvas *c, int row, int height, int cols) {
    const int head = height > 2, lines = height - head - (height > 1);
    if (lines <= 0) return;
    if (l->chosen < l->top) l->top = l->chosen;
    if (l->chosen >= l->top + (size_t)lines) l->top = l->chosen - (size_t)lines + 1;
    if (head) draw_head(l, rows, c, row, cols);
    for (int i = 0; i < lines && l->top + (size_t)i < l->n; i++) {
        const size_t k = l->top + (size_t)i;
        if (k == l->chosen) ui_canvas_fill(c, row + head + i, 0, cols, UI_STYLE_TITLE);
        rows->draw(rows->arg, l->shown[k], k == l->chosen, c, row + head + i, cols);
    }
    if (l->n == 0) ui_canvas_puts(c, row + head, 2, cols, UI_STYLE_NOTICE, rows->nothing);
    if (height > 1) draw_foot(l, rows, c, row + height - 1, cols);
}
