/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of sessions over the transcript. */
#include "ui/session_picker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "qsf_text.h"
#include "ui/format.h"

/* Cells of the columns beside the title; the narrower a window, the fewer of them. */
enum { AGE_CELLS = 11, COUNT_CELLS = 8, SIZE_CELLS = 8, WITH_COUNT = 44, WITH_MODEL = 60, WITH_SIZE = 72 };

/* ---- rows ---- */

static void row_text(const void *arg, size_t i, UiBuf *b) {
    const UiPicker *p = arg;
    const UiSessionRow *row = &p->list.rows[i];
    char ago[32], size[24];
    ui_format_ago(row->info.mtime, p->now, ago, sizeof ago);
    ui_format_file(row->info.bytes, size, sizeof size);
    ui_buf_clear(b);
    ui_buf_printf(b, "%s %s %s %zu messages %s %s %s %s", row->name ? row->name : "",
                  row->title ? row->title : "", row->model ? row->model : "", row->messages, ago, row->when,
                  size, row->state);
}

static void row_draw(const void *arg, size_t i, bool chosen, UiCanvas *c, int row, int cols) {
    const UiPicker *p = arg;
    const UiSessionRow *r = &p->list.rows[i];
    const bool current = strcmp(r->info.name, p->current) == 0;
    const UiStyle style = chosen ? UI_STYLE_TITLE : UI_STYLE_DIM;
    char text[40];
    int end = cols - 1;
    if (cols >= WITH_SIZE) {
        ui_format_file(r->info.bytes, text, sizeof text);
        end = ui_chooser_right(c, row, end, SIZE_CELLS, style, text);
    }
    ui_format_ago(r->info.mtime, p->now, text, sizeof text);
    end = ui_chooser_right(c, row, end, AGE_CELLS, style, text);
    if (cols >= WITH_COUNT) {
        (void)snprintf(text, sizeof text, "%zu msg", r->messages);
        end = ui_chooser_right(c, row, end, COUNT_CELLS, style, text);
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

static int draw_head(const void *arg, UiCanvas *c, int row, int cols) {
    const UiPicker *p = arg;
    int at = ui_canvas_puts(c, row, 1, cols, UI_STYLE_HEAD, "Sessions");
    if (p->search.len > 0) {
        char *clean = qsf_clean_dup(ui_buf_str(&p->search), p->search.len, true);
        at = ui_canvas_printf(c, row, at, cols, UI_STYLE_HEAD, " with %s", clean ? clean : "");
        free(clean);
    }
    return at;
}

static const UiSessionRow *chosen_row(const UiPicker *p) {
    const size_t i = ui_chooser_row(&p->at);
    return i < p->list.n ? &p->list.rows[i] : NULL;
}

static bool draw_question(const void *arg, UiCanvas *c, int row, int cols) {
    const UiPicker *p = arg;
    const UiSessionRow *r = chosen_row(p);
    if (!p->asking || !r) return false;
    ui_canvas_printf(c, row, 1, cols, UI_STYLE_WARN, "delete %s, %zu message%s? y deletes, any other key not",
                     r->name ? r->name : "", r->messages, r->messages == 1 ? "" : "s");
    return true;
}

static UiChooserRows rows_of(const UiPicker *p) {
    return (UiChooserRows){ .arg = p,
                            .text = row_text,
                            .draw = row_draw,
                            .head = draw_head,
                            .foot = draw_question,
                            .hints = "Enter loads  Del deletes  Esc closes",
                            .nothing = "no session matches",
                            .note = p->note };
}

/* ---- open, close ---- */

static bool read_all(UiPicker *p) {
    char err[300];
    QSFSearch *search = p->search.len > 0 ? qsf_search_new(ui_buf_str(&p->search), err, sizeof err) : NULL;
    ui_session_rows_free(&p->list);
    (void)ui_session_rows_read(&p->list, p->current, UI_PICKER_MOST, search);
    qsf_search_free(search);
    p->now = (double)time(NULL);
    p->note[0] = '\0';
    if (p->list.skipped > 0)
        (void)snprintf(p->note, sizeof p->note, "%zu not searched: too large", p->list.skipped);
    const UiChooserRows rows = rows_of(p);
    if (!ui_chooser_set(&p->at, &rows, p->list.n)) ui_session_rows_free(&p->list);
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
    if (!read_all(p)) ui_picker_close(p);
}

void ui_picker_close(UiPicker *p) {
    ui_session_rows_free(&p->list);
    ui_chooser_free(&p->at);
    ui_buf_free(&p->search);
    *p = (UiPicker){ 0 };
}

const char *ui_picker_name(const UiPicker *p) {
    const UiSessionRow *row = chosen_row(p);
    return row ? row->info.name : NULL;
}

/* ---- keys, drawing ---- */

UiPick ui_picker_key(UiPicker *p, const UiKey *k, int rows) {
    if (p->asking) {
        p->asking = false;
        return k->n == 1 && (k->bytes[0] == 'y' || k->bytes[0] == 'Y') ? UI_PICK_DELETE : UI_PICK_NOTHING;
    }
    const UiChooserRows of = rows_of(p);
    switch (ui_chooser_key(&p->at, &of, k, rows)) {
    case UI_CHOOSER_TAKE: return UI_PICK_LOAD;
    case UI_CHOOSER_CLOSE: ui_picker_close(p); break;
    case UI_CHOOSER_DELETE: p->asking = p->at.n > 0; break;
    case UI_CHOOSER_NOTHING: break;
    }
    return UI_PICK_NOTHING;
}

void ui_picker_draw(UiPicker *p, UiCanvas *c, int row, int rows, int cols, double now) {
    p->now = now;
    const UiChooserRows of = rows_of(p);
    ui_chooser_draw(&p->at, &of, c, row, rows, cols);
}
