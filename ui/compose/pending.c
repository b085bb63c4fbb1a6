/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rows above the input. */
#include "ui/compose/pending.h"

#include <stdlib.h>
#include <string.h>

#include "qsf_text.h"

#define SHOWN 1024 /* bytes of a message that may be seen */

static int most(int rows) { return rows >= 30 ? 5 : rows >= 20 ? 3 : rows >= 6 ? 1 : 0; }

static int rows_of(size_t n, int rows) { return n < (size_t)most(rows) ? (int)n : most(rows); }

int ui_pending_rows(const UiApp *a, int rows) {
    return rows_of(a->queue.n, rows) + rows_of(a->attach.n, rows);
}

/* more: messages that have no row. */
static void draw_queued(UiCanvas *c, const UiApp *a, size_t i, size_t more, bool last, int row, int cols) {
    const UiQueued *m = &a->queue.items[i];
    char *text = qsf_clean_dup(m->text, m->len < SHOWN ? m->len : SHOWN, true);
    const char *hint = more > 0        ? " /queue lists them"
                       : a->queue.held ? " Enter sends the next"
                                       : " Up takes it back";
    const int end = last && cols >= 60 ? cols - (int)strlen(hint) - 1 : cols;
    int at = more > 0 && last
                 ? ui_canvas_printf(c, row, 1, end, UI_STYLE_QUEUED, "queued %zu of %zu: ", i + 1, a->queue.n)
                 : ui_canvas_printf(c, row, 1, end, UI_STYLE_QUEUED, "queued %zu: ", i + 1);
    ui_canvas_puts(c, row, at, end - 1, UI_STYLE_TEXT, text ? text : "");
    if (end < cols) ui_canvas_puts(c, row, end, cols, UI_STYLE_DIM, hint);
    free(text);
}

/* File i; the last row has the sum of all on its right. */
static void draw_attached(UiCanvas *c, const UiAttach *files, size_t i, bool last, int row, int cols) {
    char text[400], sum[100] = "";
    const UiAttached *f = files->listed[i];
    const size_t more = last ? files->n - i - 1 : 0;
    ui_attach_describe(f, text, sizeof text);
    const bool wrong = f->result != UI_TEXTFILE_OK;
    if (last && files->n > 1) {
        ui_attach_sum(files, sum, sizeof sum);
        const int width = (int)strlen(sum) + 1;
        ui_canvas_puts(c, row, cols > width ? cols - width : 0, cols, UI_STYLE_DIM, sum);
        cols -= width + 1;
    }
    int at = ui_canvas_puts(c, row, 1, cols, wrong ? UI_STYLE_WARN : UI_STYLE_QUEUED,
                            wrong ? "not attached: " : "attached: ");
    at = ui_canvas_puts(c, row, at, cols, UI_STYLE_TEXT, text);
    if (more > 0) ui_canvas_printf(c, row, at, cols, UI_STYLE_DIM, " and %zu more", more);
}

void ui_pending_draw(UiCanvas *c, const UiApp *a, int row, int rows, int cols) {
    const size_t queued = (size_t)rows_of(a->queue.n, rows), files = (size_t)rows_of(a->attach.n, rows);
    for (size_t i = 0; i < queued; i++)
        draw_queued(c, a, i, a->queue.n - queued, i + 1 == queued, row++, cols);
    for (size_t i = 0; i < files; i++) draw_attached(c, &a->attach, i, i + 1 == files, row++, cols);
}
