/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The input line as screen rows: wrapped between graphemes, never between words, so that the cursor moves
 * evenly. */
#include <stdlib.h>
#include <string.h>

#include "qsf_text.h"
#include "ui/screen.h"
#include "ui/wrap.h"

/* State of a walk over the text. */
typedef struct Walk {
    UiCanvas *c; /* NULL: only measure */
    int top, n_rows, first, width;
    int row, col;
} Walk;

static void place(Walk *w, const char *s, size_t len, int cells, UiStyle style) {
    if (w->col + cells > w->width && w->col > 0) {
        w->row++;
        w->col = 0;
    }
    int shown = w->row - w->first;
    if (w->c && shown >= 0 && shown < w->n_rows)
        ui_canvas_put(w->c, w->top + shown, w->col, w->width, style, s, len);
    w->col += cells;
}

/* The visible form of one cluster: control characters and similar become marks. */
static void place_cluster(Walk *w, const char *s, size_t len) {
    if (len == 1 && *s >= 0x20 && *s < 0x7f) {
        place(w, s, 1, 1, UI_STYLE_TEXT);
        return;
    }
    char clean[QSF_CLEAN_MAX(64)];
    QSFClean state = { 0 };
    size_t n = *s == '\t' ? 0 : qsf_clean(&state, s, len < 64 ? len : 64, true, clean);
    if (*s == '\t') {
        for (int i = UI_TAB - w->col % UI_TAB; i > 0; i--) place(w, " ", 1, 1, UI_STYLE_TEXT);
        return;
    }
    place(w, clean, n, (int)qsf_text_width(clean, n), UI_STYLE_TEXT);
}

/* A paste is one thing of several cells. */
static void place_fold(Walk *w, const UiFolds *folds, int i) {
    char label[80];
    ui_fold_label(folds, i, label, sizeof label);
    for (const char *p = label; *p; p++) place(w, p, 1, 1, UI_STYLE_KEY);
}

/* A search has the text that is searched in its prompt. */
static void place_prompt(Walk *w, const char *prompt) {
    char *clean = qsf_clean_dup(prompt, strlen(prompt), true);
    size_t len = clean ? strlen(clean) : 0;
    for (size_t i = 0, n; i < len; i += n) {
        int cells;
        n = qsf_text_grapheme(clean + i, len - i, &cells);
        if (n == 0) break;
        place(w, clean + i, n, cells, UI_STYLE_USER);
    }
    free(clean);
}

static void walk(Walk *w, const UiInputView *in, int *point_row, int *point_col) {
    place_prompt(w, in->prompt);
    int indent = w->col;
    for (size_t i = 0, n; i <= in->len; i += n) {
        if (i == in->point || (i == in->len && in->point > in->len)) {
            *point_row = w->col < w->width ? w->row : w->row + 1;
            *point_col = w->col < w->width ? w->col : 0;
        }
        if (i == in->len) return;
        if (in->text[i] == '\n') {
            w->row++;
            w->col = indent < w->width ? indent : 0;
            n = 1;
            continue;
        }
        int cells;
        const int fold = in->folds ? ui_fold_at(in->text + i, in->len - i) : -1;
        if (fold >= 0) {
            place_fold(w, in->folds, fold);
            n = UI_FOLD_BYTES;
            continue;
        }
        n = qsf_text_grapheme(in->text + i, in->len - i, &cells);
        if (n == 0) return;
        if (in->point > i && in->point < i + n) {
            *point_row = w->row;
            *point_col = w->col;
        }
        place_cluster(w, in->text + i, n);
    }
}

int ui_input_rows(const UiInputView *in, int width, int *point_row, int *point_col) {
    Walk w = { .width = width > 0 ? width : 1 };
    *point_row = *point_col = 0;
    walk(&w, in, point_row, point_col);
    return (w.row > *point_row ? w.row : *point_row) + 1;
}

void ui_input_draw(const UiInputView *in, UiCanvas *c, int row, int n_rows, int first, int width) {
    Walk w = { .c = c, .top = row, .n_rows = n_rows, .first = first, .width = width > 0 ? width : 1 };
    int point_row = 0, point_col = 0;
    walk(&w, in, &point_row, &point_col);
    c->cursor_row = row + point_row - first;
    c->cursor_col = point_col;
}
