/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lines of code: not wrapped by words, highlighted, with a bar on their left. */
#include <stdio.h>
#include <string.h>

#include "ui/md/layout.h"
#include "ui/wrap.h"

#define RUNS_MAX 128 /* of one kind in a line; what follows is text */
#define NAME_MAX 24  /* cells of a language */

/* Cells of the bar and of the mark of a line that continues. */
#define BAR 2

_Static_assert(UI_STYLE_CODE + UI_CODE_CLASSES - 1 == UI_STYLE_CODE_HUNK, "styles of code and their classes");

static size_t first_word(const char *s, size_t len) {
    size_t n = 0;
    while (n < len && s[n] != ' ' && s[n] != '\t' && s[n] != ',') n++;
    return n;
}

void ui_md_code_head(UiMdLay *l, uint32_t box, const char *info, size_t len, unsigned number, size_t src) {
    const UiInk key = { .style = UI_STYLE_KEY }, dim = { .style = UI_STYLE_DIM };
    const int start = ui_md_open_row(l, box, src), end = start + ui_md_room(l, box);
    const char *line = l->look.unicode ? "─" : "-";
    char text[24];
    size_t name = first_word(info, len), used = 0;
    if (l->r->n > 0) l->r->rows[l->r->n - 1].code = true;
    int col = ui_md_repeat(l, start, 1, UI_STYLE_DIM, l->look.unicode ? "┌" : "+");
    col = ui_md_repeat(l, col, 1, UI_STYLE_DIM, line) + 1;
    for (int cells = 0, all = 0; used < name; all += cells) {
        const size_t n = ui_wrap_step(info + used, name - used, 0, &cells);
        if (n == 0 || all + cells > NAME_MAX || col + all + cells > end - 5) break;
        used += n;
    }
    if (used > 0) col = ui_md_rows_put(l->r, col, key, info, used) + 2;
    const int n = snprintf(text, sizeof text, "[%u]", number);
    col = ui_md_rows_put(l->r, col, dim, text, (size_t)n) + 1;
    if (col < end) (void)ui_md_repeat(l, col, end - col, UI_STYLE_DIM, line);
}

typedef struct Row {
    UiMdLay *l;
    uint32_t box;
    const char *line;
    size_t src, line_src; /* of the row and of the line in the source */
    int start, room, at;  /* at: cells of the line so far */
} Row;

static void open_row(Row *row, bool again) {
    UiMdLay *l = row->l;
    const int col = ui_md_open_row(l, row->box, row->src);
    row->start = ui_md_repeat(l, col, 1, UI_STYLE_DIM, l->look.unicode ? "│" : "|") + 1;
    if (again) (void)ui_md_repeat(l, col + 1, 1, UI_STYLE_DIM, l->look.unicode ? "↳" : ">");
    row->at = 0;
}

static void put_run(Row *row, const char *s, size_t len, UiInk ink) {
    size_t from = 0;
    int from_at = row->at;
    for (size_t i = 0; i < len;) {
        int cells = 0;
        const size_t n = ui_wrap_step(s + i, len - i, row->at, &cells);
        const bool tab = s[i] == '\t';
        if (n == 0) break;
        if (row->at + cells > row->room && row->at > 0) {
            (void)ui_md_rows_put(row->l->r, row->start + from_at, ink, s + from, i - from);
            row->src = row->line_src + (size_t)(s + i - row->line);
            open_row(row, true);
            from = i;
            from_at = 0;
            continue;
        }
        if (tab) {
            (void)ui_md_rows_put(row->l->r, row->start + from_at, ink, s + from, i - from);
            (void)ui_md_rows_put(row->l->r, row->start + row->at, ink, "        ", (size_t)cells);
            from = i + 1;
            from_at = row->at + cells;
        }
        row->at += cells;
        i += n;
    }
    (void)ui_md_rows_put(row->l->r, row->start + from_at, ink, s + from, len - from);
}

void ui_md_code_line(UiMdLay *l, uint32_t box, const char *line, size_t len, const UiLexer *x,
                     UiCodeState *state, size_t src) {
    UiCodeRun runs[RUNS_MAX] = { { .len = len } };
    const size_t n = x ? ui_code_line(x, state, line, len, runs, RUNS_MAX) : 1;
    Row row = {
        .l = l, .box = box, .line = line, .src = src, .line_src = src, .room = ui_md_room(l, box) - BAR
    };
    if (row.room < 1) row.room = 1;
    open_row(&row, false);
    for (size_t i = 0; i < n; i++) {
        const UiInk ink = { .style = (uint8_t)(UI_STYLE_CODE + runs[i].kind) };
        put_run(&row, line + runs[i].at, runs[i].len, ink);
    }
}
