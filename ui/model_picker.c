/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of models over the transcript. */
#include "ui/model_picker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_models.h"
#include "qsf_text.h"
#include "ui/format.h"

/* Cells of the columns beside the name; the narrower a window, the fewer of them. */
enum { SIZE_CELLS = 9, TYPE_CELLS = 7, ARCH_CELLS = 14, VERDICT_CELLS = 30 };
enum { ESTIMATE_CELLS = 18, ABOUT_CELLS = 34 };
enum { WITH_SIZE = 40, WITH_VERDICT = 56, WITH_TYPE = 76, WITH_ARCH = 96 };

#define NAME_MOST  48 /* cells of names in lines */
#define GUIDE_TEXT "the built-in guide: knows this program and nothing else"

/* ---- rows: those that were found, then the guide; where none was found, models of the hub after it ---- */

static const UiModelRow *row_at(const UiModelPicker *p, size_t i) {
    return i < p->scan.n ? &p->scan.rows[i] : NULL;
}

static const QSFModelSuggestion *suggestion_at(const UiModelPicker *p, size_t i) {
    return p->scan.n == 0 && p->scan.pid == 0 && i > 0 ? qsf_model_suggestion(i - 1) : NULL;
}

static size_t row_count(const UiModelPicker *p) {
    size_t n = p->scan.n + 1;
    while (suggestion_at(p, n)) n++;
    return n;
}

/* "2.32 GB, fits" */
static void put_estimate(const QSFModelSuggestion *s, char *dst, size_t cap) {
    char size[24];
    ui_format_bytes(s->bytes, size, sizeof size);
    (void)snprintf(dst, cap, "%s, %s", size,
                   qsf_model_suggestion_fits(s, qsf_memory_available()) ? "fits" : "streams");
}

static void row_text(const void *arg, size_t i, UiBuf *b) {
    const UiModelRow *row = row_at(arg, i);
    const QSFModelSuggestion *s = suggestion_at(arg, i);
    if (s) {
        ui_buf_clear(b);
        ui_buf_printf(b, "%s %s", s->name, s->about);
        return;
    }
    if (row) {
        ui_model_row_text(row, b);
        return;
    }
    ui_buf_clear(b);
    ui_buf_puts(b, QSF_GUIDE " " GUIDE_TEXT);
}

static int put_left(UiCanvas *c, int row, int end, int cells, UiStyle style, const char *text) {
    ui_canvas_puts(c, row, end - cells, end, style, text);
    return end - cells - 2;
}

static UiStyle verdict_style(const UiModelRow *r) {
    const char *v = r->field[UI_MODEL_VERDICT];
    return strcmp(v, "fits") == 0                                   ? UI_STYLE_GOOD
           : ui_model_row_refused(r) || strncmp(v, "needs", 5) == 0 ? UI_STYLE_WARN
                                                                    : UI_STYLE_VALUE;
}

/* A server may not say how large a model is. */
static void put_size(const UiModelRow *r, char *dst, size_t cap) {
    *dst = '\0';
    if (r->bytes > 0) ui_format_bytes(r->bytes, dst, cap);
}

static void draw_model(const UiModelRow *r, bool chosen, UiCanvas *c, int row, int cols) {
    const UiStyle style = chosen ? UI_STYLE_TITLE : UI_STYLE_DIM;
    char size[24];
    int end = cols - 1;
    if (cols >= WITH_VERDICT)
        end = put_left(c, row, end, VERDICT_CELLS, chosen ? UI_STYLE_TITLE : verdict_style(r),
                       r->field[UI_MODEL_VERDICT]);
    if (cols >= WITH_ARCH) end = put_left(c, row, end, ARCH_CELLS, style, r->field[UI_MODEL_ARCH]);
    if (cols >= WITH_TYPE) end = put_left(c, row, end, TYPE_CELLS, style, r->field[UI_MODEL_TYPE]);
    if (cols >= WITH_SIZE) {
        put_size(r, size, sizeof size);
        end = ui_chooser_right(c, row, end, SIZE_CELLS, style, size);
    }
    ui_canvas_puts(c, row, 2, end,
                   chosen                    ? UI_STYLE_TITLE
                   : ui_model_row_refused(r) ? UI_STYLE_DIM
                                             : UI_STYLE_TEXT,
                   r->field[UI_MODEL_NAME]);
}

static void draw_suggestion(const QSFModelSuggestion *s, bool chosen, UiCanvas *c, int row, int cols) {
    const UiStyle style = chosen ? UI_STYLE_TITLE : UI_STYLE_DIM;
    char estimate[48];
    int end = cols - 1;
    put_estimate(s, estimate, sizeof estimate);
    if (cols >= WITH_ARCH) end = put_left(c, row, end, ABOUT_CELLS, style, s->about);
    if (cols >= WITH_VERDICT) end = put_left(c, row, end, ESTIMATE_CELLS, style, estimate);
    ui_canvas_puts(c, row, 2, end, chosen ? UI_STYLE_TITLE : UI_STYLE_TEXT, s->name);
}

static void row_draw(const void *arg, size_t i, bool chosen, UiCanvas *c, int row, int cols) {
    const UiModelRow *r = row_at(arg, i);
    const QSFModelSuggestion *s = suggestion_at(arg, i);
    if (chosen) ui_canvas_puts(c, row, 0, cols, UI_STYLE_TITLE, ">");
    if (r) {
        draw_model(r, chosen, c, row, cols);
        return;
    }
    if (s) {
        draw_suggestion(s, chosen, c, row, cols);
        return;
    }
    const int at = ui_canvas_puts(c, row, 2, cols, chosen ? UI_STYLE_TITLE : UI_STYLE_TEXT, QSF_GUIDE);
    ui_canvas_puts(c, row, at + 2, cols, chosen ? UI_STYLE_TITLE : UI_STYLE_DIM, GUIDE_TEXT);
}

static int draw_head(const void *arg, UiCanvas *c, int row, int cols) {
    const UiModelPicker *p = arg;
    const int at = ui_canvas_puts(c, row, 1, cols, UI_STYLE_HEAD, p->title);
    return p->scan.pid ? ui_canvas_puts(c, row, at + 1, cols, UI_STYLE_NOTICE, "(looking)") : at;
}

/* What does not fit in a row. */
static bool draw_reason(const void *arg, UiCanvas *c, int row, int cols) {
    const size_t i = ui_chooser_row(&((const UiModelPicker *)arg)->at);
    const UiModelRow *r = row_at(arg, i);
    const QSFModelSuggestion *s = suggestion_at(arg, i);
    if (s) {
        char estimate[48];
        put_estimate(s, estimate, sizeof estimate);
        ui_canvas_printf(c, row, 1, cols, UI_STYLE_NOTICE, "Enter downloads it: %s; %s", estimate, s->about);
        return true;
    }
    if (!r || !*r->field[UI_MODEL_VERDICT] || (cols >= WITH_VERDICT && !ui_model_row_refused(r)))
        return false;
    ui_canvas_puts(c, row, 1, cols, verdict_style(r), r->field[UI_MODEL_VERDICT]);
    return true;
}

static UiChooserRows rows_of(const UiModelPicker *p) {
    return (UiChooserRows){ .arg = p,
                            .text = row_text,
                            .draw = row_draw,
                            .head = draw_head,
                            .foot = draw_reason,
                            .hints = "Enter loads  Esc closes",
                            .nothing = "no model matches",
                            .note = p->scan.note };
}

/* ---- open, close ---- */

void ui_model_picker_open(UiModelPicker *p, const char *filter, const char *only) {
    char *clean = only ? qsf_clean_dup(only, strlen(only), true) : NULL;
    p->open = true;
    p->moved = false;
    (void)snprintf(p->title, sizeof p->title, "Models%s%s", clean ? " in " : "", clean ? clean : "");
    free(clean);
    ui_buf_clear(&p->at.filter);
    ui_buf_puts(&p->at.filter, filter);
    ui_model_picker_update(p);
}

/* The first row with a model that can be loaded, or the guide. */
static void choose_first(UiModelPicker *p) {
    p->at.chosen = 0;
    for (size_t k = 0; k < p->at.n; k++) {
        const UiModelRow *r = row_at(p, p->at.shown[k]);
        if (r && ui_model_row_refused(r)) continue;
        p->at.chosen = k;
        return;
    }
}

/* The first one stays chosen until the user moves: the last model may come to its place. */
void ui_model_picker_update(UiModelPicker *p) {
    const UiChooserRows rows = rows_of(p);
    const size_t chosen = ui_chooser_row(&p->at), before = p->at.all;
    const bool guide = before > 0 && chosen + 1 == before;
    (void)ui_chooser_set(&p->at, &rows, row_count(p));
    if (!p->moved)
        choose_first(p);
    else
        ui_chooser_choose(&p->at, guide ? p->scan.n : chosen);
}

void ui_model_picker_close(UiModelPicker *p) {
    ui_model_scan_stop(&p->scan);
    ui_chooser_free(&p->at);
    *p = (UiModelPicker){ 0 };
}

const char *ui_model_picker_path(const UiModelPicker *p) {
    const size_t i = ui_chooser_row(&p->at);
    const QSFModelSuggestion *s = i == SIZE_MAX ? NULL : suggestion_at(p, i);
    if (s) return s->name;
    if (i < p->scan.n) return p->scan.rows[i].field[UI_MODEL_PATH];
    return i == p->scan.n ? QSF_GUIDE : NULL;
}

const char *ui_model_picker_verdict(const UiModelPicker *p) {
    const UiModelRow *r = row_at(p, ui_chooser_row(&p->at));
    return r ? r->field[UI_MODEL_VERDICT] : "";
}

UiModelPick ui_model_picker_key(UiModelPicker *p, const UiKey *k, int rows) {
    const UiChooserRows of = rows_of(p);
    p->moved = true;
    switch (ui_chooser_key(&p->at, &of, k, rows)) {
    case UI_CHOOSER_TAKE: {
        const UiModelRow *r = row_at(p, ui_chooser_row(&p->at));
        return r && ui_model_row_refused(r) ? UI_MODEL_PICK_REFUSED : UI_MODEL_PICK_LOAD;
    }
    case UI_CHOOSER_CLOSE: return UI_MODEL_PICK_CLOSED;
    case UI_CHOOSER_DELETE: /* ^D leaves; no model is deleted */
        return k->n == 1 ? UI_MODEL_PICK_CLOSED : UI_MODEL_PICK_NOTHING;
    default: return UI_MODEL_PICK_NOTHING;
    }
}

void ui_model_picker_draw(UiModelPicker *p, UiCanvas *c, int row, int rows, int cols) {
    const UiChooserRows of = rows_of(p);
    ui_chooser_draw(&p->at, &of, c, row, rows, cols);
}

/* ---- lines ---- */

int ui_model_wider(int cells, const char *name) {
    const int w = (int)qsf_text_width(name, strlen(name));
    return w > cells && w <= NAME_MOST ? w : cells;
}

void ui_model_row_line(const UiModelRow *row, int name_cells, UiBuf *b) {
    char size[24];
    const char *const *f = row->field;
    put_size(row, size, sizeof size);
    ui_buf_puts(b, f[UI_MODEL_NAME]);
    for (int w = (int)qsf_text_width(f[UI_MODEL_NAME], strlen(f[UI_MODEL_NAME])); w < name_cells; w++)
        ui_buf_puts(b, " ");
    ui_buf_printf(b, "  %*s  %-*s  %-*s  %s", SIZE_CELLS, size, TYPE_CELLS, f[UI_MODEL_TYPE], ARCH_CELLS,
                  f[UI_MODEL_ARCH], f[UI_MODEL_VERDICT]);
}
