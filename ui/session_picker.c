/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of sessions over the transcript. */
#include "ui/session_picker.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "qsf_text.h"
#include "ui/format.h"

#define FILTER_MAX 200 /* bytes */

/* Cells of the columns beside the title; the narrower a window, the fewer of them. */
enum { AGE_CELLS = 11, COUNT_CELLS = 8, SIZE_CELLS = 8, WITH_COUNT = 44, WITH_MODEL = 60, WITH_SIZE = 72 };

/* ---- filter ---- */

/* All that is shown of a row, in lower case; ASCII only: text of other scripts has to match exactly. */
static void text_of(const UiSessionRow *row, double now, UiBuf *b) {
    char ago[32], size[24];
    ui_format_ago(row->info.mtime, now, ago, sizeof ago);
    ui_format_file(row->info.bytes, size, sizeof size);
    ui_buf_clear(b);
    ui_buf_printf(b, "%s %s %s %zu messages %s %s %s %s", row->name ? row->name : "",
                  row->title ? row->title : "", row->model ? row->model : "", row->messages, ago, row->when,
                  size, row->state);
    for (size_t i = 0; i < b->len; i++) b->data[i] = (char)tolower((unsigned char)b->data[i]);
}

/* All words of the filter occur. */
static bool passes(const char *text, const char *filter) {
    char word[FILTER_MAX + 1];
    for (const char *p = filter; *p;) {
        const size_t len = strcspn(p, " ");
        for (size_t i = 0; i < len; i++) word[i] = (char)tolower((unsigned char)p[i]);
        word[len] = '\0';
        if (!strstr(text, word)) return false;
        p += len + strspn(p + len, " ");
    }
    return true;
}

static void apply_filter(UiPicker *p) {
    const double now = (double)time(NULL);
    UiBuf text = { 0 };
    p->n = p->chosen = p->top = 0;
    for (size_t i = 0; i < p->list.n; i++) {
        text_of(&p->list.rows[i], now, &text);
        if (passes(ui_buf_str(&text), ui_buf_str(&p->filter))) p->shown[p->n++] = i;
    }
    ui_buf_free(&text);
}

/* ---- open, close ---- */

static bool read_all(UiPicker *p) {
    char err[300];
    QSFSearch *search = p->search.len > 0 ? qsf_search_new(ui_buf_str(&p->search), err, sizeof err) : NULL;
    ui_session_rows_free(&p->list);
    (void)ui_session_rows_read(&p->list, p->current, UI_PICKER_MOST, search);
    qsf_search_free(search);
    free(p->shown);
    p->shown = p->list.n > 0 ? malloc(p->list.n * sizeof *p->shown) : NULL;
    if (!p->shown) ui_session_rows_free(&p->list);
    apply_filter(p);
    return p->list.n > 0;
}

bool ui_picker_open(UiPicker *p, const char *current, const char *search) {
    ui_picker_close(p);
    (void)snprintf(p->current, sizeof p->current, "%s", current);
    ui_buf_puts(&p->search, search);
    p->open = read_all(p);
    if (!p->open) ui_picker_close(p);
    return p->open;
}

void ui_picker_refresh(UiPicker *p) {
    const size_t chosen = p->chosen;
    if (!read_all(p)) {
        ui_picker_close(p);
        return;
    }
    p->chosen = chosen < p->n ? chosen : p->n > 0 ? p->n - 1 : 0;
}

void ui_picker_close(UiPicker *p) {
    ui_session_rows_free(&p->list);
    free(p->shown);
    ui_buf_free(&p->filter);
    ui_buf_free(&p->search);
    *p = (UiPicker){ 0 };
}

static const UiSessionRow *chosen_row(const UiPicker *p) {
    return p->chosen < p->n ? &p->list.rows[p->shown[p->chosen]] : NULL;
}

const char *ui_picker_name(const UiPicker *p) {
    const UiSessionRow *row = chosen_row(p);
    return row ? row->info.name : NULL;
}

/* ---- keys ---- */

static bool is_one_of(const UiKey *k, const char *a, const char *b) {
    return (k->n == strlen(a) && memcmp(k->bytes, a, k->n) == 0) ||
           (k->n == strlen(b) && memcmp(k->bytes, b, k->n) == 0);
}

static void move(UiPicker *p, long by) {
    const long last = p->n > 0 ? (long)p->n - 1 : 0, to = (long)p->chosen + by;
    p->chosen = (size_t)(to < 0 ? 0 : to > last ? last : to);
}

static void erase_character(UiPicker *p) {
    size_t len = p->filter.len;
    while (len > 0 && ((unsigned char)p->filter.data[len - 1] & 0xc0) == 0x80) len--;
    if (len > 0) len--;
    if (p->filter.len > 0) p->filter.data[p->filter.len = len] = '\0';
    apply_filter(p);
}

/* Keys that move, or false. */
static bool key_moves(UiPicker *p, const UiKey *k, int rows) {
    const long page = rows > 4 ? rows - 3 : 1;
    if (k->action == UI_DO_LINE_UP || is_one_of(k, "\x1b[A", "\x1bOA"))
        move(p, -1);
    else if (k->action == UI_DO_LINE_DOWN || is_one_of(k, "\x1b[B", "\x1bOB"))
        move(p, 1);
    else if (k->action == UI_DO_PAGE_UP)
        move(p, -page);
    else if (k->action == UI_DO_PAGE_DOWN)
        move(p, page);
    else if (k->action == UI_DO_HOME || is_one_of(k, "\x1b[H", "\x1bOH"))
        move(p, -(long)p->n);
    else if (k->action == UI_DO_END || is_one_of(k, "\x1b[F", "\x1bOF"))
        move(p, (long)p->n);
    else
        return false;
    return true;
}

static void key_edits(UiPicker *p, const UiKey *k) {
    const unsigned char c = k->n == 1 ? (unsigned char)k->bytes[0] : 0;
    if (c == 0x7f || c == 0x08) {
        erase_character(p);
    } else if (c == 0x15) { /* ^U */
        ui_buf_clear(&p->filter);
        apply_filter(p);
    } else if (c >= ' ' && p->filter.len < FILTER_MAX) {
        (void)ui_buf_add(&p->filter, k->bytes, 1);
        apply_filter(p);
    }
}

UiPick ui_picker_key(UiPicker *p, const UiKey *k, int rows) {
    if (p->asking) {
        p->asking = false;
        return k->n == 1 && (k->bytes[0] == 'y' || k->bytes[0] == 'Y') ? UI_PICK_DELETE : UI_PICK_NOTHING;
    }
    if (k->action == UI_DO_REDRAW || key_moves(p, k, rows)) return UI_PICK_NOTHING;
    if (is_one_of(k, "\r", "\n")) return p->n > 0 ? UI_PICK_LOAD : UI_PICK_NOTHING;
    if (k->action == UI_DO_ESCAPE || k->action == UI_DO_STOP) {
        ui_picker_close(p);
    } else if (is_one_of(k, "\x1b[3~", "\x04")) {
        p->asking = p->n > 0;
    } else if (k->action == UI_DO_EDIT) {
        key_edits(p, k);
    }
    return UI_PICK_NOTHING;
}

/* ---- drawing ---- */

static int put_right(UiCanvas *c, int row, int end, int cells, UiStyle style, const char *text) {
    const int w = (int)qsf_text_width(text, strlen(text));
    ui_canvas_puts(c, row, w < cells ? end - w : end - cells, end, style, text);
    return end - cells - 2;
}

static void draw_row(const UiPicker *p, UiCanvas *c, size_t i, int row, int cols, double now) {
    const UiSessionRow *r = &p->list.rows[p->shown[i]];
    const bool chosen = i == p->chosen, current = strcmp(r->info.name, p->current) == 0;
    const UiStyle style = chosen ? UI_STYLE_TITLE : UI_STYLE_DIM;
    char text[40];
    int end = cols - 1;
    if (chosen) ui_canvas_fill(c, row, 0, cols, UI_STYLE_TITLE);
    if (cols >= WITH_SIZE) {
        ui_format_file(r->info.bytes, text, sizeof text);
        end = put_right(c, row, end, SIZE_CELLS, style, text);
    }
    ui_format_ago(r->info.mtime, now, text, sizeof text);
    end = put_right(c, row, end, AGE_CELLS, style, text);
    if (cols >= WITH_COUNT) {
        (void)snprintf(text, sizeof text, "%zu msg", r->messages);
        end = put_right(c, row, end, COUNT_CELLS, style, text);
    }
    if (cols >= WITH_MODEL) {
        const int cells = cols / 5;
        ui_canvas_puts(c, row, end - cells, end, style, r->model ? r->model : "");
        end -= cells + 2;
    }
    const int at = ui_canvas_printf(c, row, 0, end, chosen ? UI_STYLE_TITLE : UI_STYLE_NOTICE, "%s%s%s",
                                    chosen ? ">" : " ", current ? "*" : " ", r->state);
    ui_canvas_puts(c, row, at, end, chosen ? UI_STYLE_TITLE : UI_STYLE_TEXT,
                   r->title && *r->title ? r->title
                   : r->name             ? r->name
                                         : "");
}

static void draw_head(const UiPicker *p, UiCanvas *c, int row, int cols) {
    int at = ui_canvas_puts(c, row, 1, cols, UI_STYLE_HEAD, "Sessions");
    if (p->search.len > 0) {
        char *clean = qsf_clean_dup(ui_buf_str(&p->search), p->search.len, true);
        at = ui_canvas_printf(c, row, at, cols, UI_STYLE_HEAD, " with %s", clean ? clean : "");
        free(clean);
    }
    char *filter = qsf_clean_dup(ui_buf_str(&p->filter), p->filter.len, true);
    if (p->filter.len > 0)
        ui_canvas_printf(c, row, at + 2, cols, UI_STYLE_VALUE, "%s_", filter ? filter : "");
    else
        ui_canvas_puts(c, row, at + 2, cols, UI_STYLE_DIM, "type to filter");
    free(filter);
}

static void draw_foot(const UiPicker *p, UiCanvas *c, int row, int cols) {
    const UiSessionRow *r = chosen_row(p);
    if (p->asking && r) {
        ui_canvas_printf(c, row, 1, cols, UI_STYLE_WARN,
                         "delete %s, %zu message%s? y deletes, any other key not", r->name ? r->name : "",
                         r->messages, r->messages == 1 ? "" : "s");
        return;
    }
    int at = ui_canvas_printf(c, row, 1, cols, UI_STYLE_NOTICE, "%zu of %zu", p->n > 0 ? p->chosen + 1 : 0,
                              p->n);
    if (p->n < p->list.n && cols >= WITH_COUNT)
        at = ui_canvas_printf(c, row, at, cols, UI_STYLE_NOTICE, " (%zu without the filter)", p->list.n);
    if (p->list.skipped > 0 && cols >= WITH_SIZE)
        at = ui_canvas_printf(c, row, at, cols, UI_STYLE_WARN, "  %zu not searched: too large",
                              p->list.skipped);
    static const char hints[] = "Enter loads  Del deletes  Esc closes";
    const int from = cols - (int)sizeof hints;
    if (from > at + 1)
        ui_canvas_puts(c, row, from, cols, UI_STYLE_DIM, hints);
    else
        ui_canvas_puts(c, row, at + 2, cols, UI_STYLE_DIM, "Enter Del Esc");
}

void ui_picker_draw(UiPicker *p, UiCanvas *c, int row, int rows, int cols, double now) {
    const int head = rows > 2, lines = rows - head - (rows > 1);
    if (lines <= 0) return;
    if (p->chosen < p->top) p->top = p->chosen;
    if (p->chosen >= p->top + (size_t)lines) p->top = p->chosen - (size_t)lines + 1;
    if (head) draw_head(p, c, row, cols);
    for (int i = 0; i < lines && p->top + (size_t)i < p->n; i++)
        draw_row(p, c, p->top + (size_t)i, row + head + i, cols, now);
    if (p->n == 0) ui_canvas_puts(c, row + head, 2, cols, UI_STYLE_NOTICE, "no session matches");
    if (rows > 1) draw_foot(p, c, row + rows - 1, cols);
}
