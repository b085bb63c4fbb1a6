/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables: columns as wide as their text, or narrower and wrapped where the width does not suffice. In a
 * window that is narrower still, each row is a list of its cells with their headers. */
#include <stdlib.h>
#include <string.h>

#include "qsf_text.h"
#include "ui/md/layout.h"
#include "ui/wrap.h"

#define GAP        3 /* " | " */
#define COLUMN_MIN 6 /* cells; a column that is wrapped is not narrower */

typedef struct Cell {
    size_t from, to; /* of the flat text */
} Cell;

typedef struct Table {
    UiMdLay *l;
    const UiMdBlock *head; /* followed by the cells */
    size_t rows, columns;
    Cell *cells;  /* (rows, columns) */
    int *natural; /* (columns) width of the longest line */
    int *width;   /* (columns) */
    size_t *at;   /* (columns) offset of the text of the row that is not yet on the screen */
    bool wrapped; /* some rows have several lines */
} Table;

static const Cell *cell_at(const Table *t, size_t row, size_t column) {
    return &t->cells[row * t->columns + column];
}

static const UiMdBlock *block_at(const Table *t, size_t row, size_t column) {
    return t->head + 1 + row * t->columns + column;
}

/* Width of the longest line of flat[from, to). */
static int longest(const UiMdLay *l, Cell cell, bool *lines) {
    const char *s = ui_buf_str(&l->flat);
    int most = 0;
    for (size_t i = cell.from; i < cell.to;) {
        const char *nl = memchr(s + i, '\n', cell.to - i);
        const size_t end = nl ? (size_t)(nl - s) : cell.to;
        const int w = (int)qsf_text_width(s + i, end - i);
        most = w > most ? w : most;
        *lines = *lines || nl;
        i = end + 1;
    }
    return most;
}

static void measure(Table *t) {
    UiMdLay *l = t->l;
    ui_buf_clear(&l->flat);
    l->n_pieces = 0;
    for (size_t r = 0; r < t->rows; r++) {
        for (size_t c = 0; c < t->columns; c++) {
            const UiInk ink = { .style = UI_STYLE_TEXT, .attrs = r == 0 ? UI_ATTR_BOLD : 0 };
            Cell *cell = &t->cells[r * t->columns + c];
            cell->from = ui_md_flatten(l, block_at(t, r, c), ink);
            cell->to = l->flat.len;
            const int w = longest(l, *cell, &t->wrapped);
            t->natural[c] = w > t->natural[c] ? w : t->natural[c];
        }
    }
    for (size_t c = 0; c < t->columns; c++) t->natural[c] = t->natural[c] > 0 ? t->natural[c] : 1;
}

static int total(const Table *t, int most) {
    int sum = 0;
    for (size_t c = 0; c < t->columns; c++) sum += t->natural[c] < most ? t->natural[c] : most;
    return sum;
}

/* The widest columns become narrower, all of them by the same limit. false: too narrow. */
static bool fit(Table *t, int room) {
    const long gaps = (long)GAP * (long)(t->columns - 1);
    if (gaps >= room) return false;
    room -= (int)gaps;
    int most = room;
    while (most >= COLUMN_MIN && total(t, most) > room) most--;
    if (total(t, most) > room) return false;
    int left = room - total(t, most);
    for (size_t c = 0; c < t->columns; c++) {
        t->width[c] = t->natural[c] < most ? t->natural[c] : most;
        if (t->natural[c] > t->width[c]) {
            const int more = t->natural[c] - t->width[c] < left ? t->natural[c] - t->width[c] : left;
            t->width[c] += more;
            left -= more;
        }
        t->wrapped = t->wrapped || t->natural[c] > t->width[c];
    }
    return true;
}

/* ---- as columns ---- */

static int pad_before(UiMdAlign align, int free) {
    return align == UI_MD_RIGHT ? free : align == UI_MD_CENTER ? free / 2 : 0;
}

/* The next line of a cell. */
static void put_cell(Table *t, size_t row, size_t c, int col) {
    UiMdLay *l = t->l;
    const Cell *cell = cell_at(t, row, c);
    UiLine line;
    unsigned indent;
    if (t->at[c] >= cell->to) return;
    const char *s = ui_buf_str(&l->flat) + cell->from;
    const size_t next = ui_wrap_next(s, cell->to - cell->from, t->at[c] - cell->from, 0, t->width[c], &line,
                                     &indent);
    const int used = (int)qsf_text_width(s + line.off, line.len);
    const int pad = pad_before((UiMdAlign)block_at(t, row, c)->level,
                               t->width[c] > used ? t->width[c] - used : 0);
    (void)ui_md_put_flat(l, col + pad, cell->from + line.off, cell->from + line.off + line.len);
    t->at[c] = cell->from + next;
}

static bool row_is_done(const Table *t, size_t row) {
    for (size_t c = 0; c < t->columns; c++) {
        if (t->at[c] < cell_at(t, row, c)->to) return false;
    }
    return true;
}

static void put_row(Table *t, size_t row) {
    UiMdLay *l = t->l;
    for (size_t c = 0; c < t->columns; c++) t->at[c] = cell_at(t, row, c)->from;
    do {
        int col = ui_md_open_row(l, t->head->box, block_at(t, row, 0)->off);
        for (size_t c = 0; c < t->columns; c++) {
            put_cell(t, row, c, col);
            col += t->width[c] + GAP;
            if (c + 1 < t->columns)
                (void)ui_md_repeat(l, col - 2, 1, UI_STYLE_DIM, l->look.unicode ? "│" : "|");
        }
    } while (!row_is_done(t, row));
}

static void put_rule(Table *t, size_t src) {
    UiMdLay *l = t->l;
    const char *line = l->look.unicode ? "─" : "-", *cross = l->look.unicode ? "┼" : "+";
    int col = ui_md_open_row(l, t->head->box, src);
    for (size_t c = 0; c < t->columns; c++) {
        col = ui_md_repeat(l, col, t->width[c], UI_STYLE_DIM, line);
        if (c + 1 == t->columns) break;
        col = ui_md_repeat(l, col, 1, UI_STYLE_DIM, line);
        col = ui_md_repeat(l, col, 1, UI_STYLE_DIM, cross);
        col = ui_md_repeat(l, col, 1, UI_STYLE_DIM, line);
    }
}

static void as_columns(Table *t) {
    for (size_t r = 0; r < t->rows; r++) {
        if (r == 1 || (r > 1 && t->wrapped)) put_rule(t, block_at(t, r, 0)->off);
        put_row(t, r);
    }
    if (t->rows == 1) put_rule(t, t->head->off);
}

/* ---- as lists ---- */

/* "header: value"; the header alone if the table has no other row. */
static void put_entry(Table *t, size_t row, size_t c) {
    UiMdLay *l = t->l;
    const UiInk bold = { .attrs = UI_ATTR_BOLD };
    const uint32_t box = t->head->box;
    const int room = ui_md_room(l, box);
    ui_buf_clear(&l->flat);
    l->n_pieces = 0;
    (void)ui_md_flatten(l, block_at(t, 0, c), bold);
    if (row > 0) {
        ui_md_flat_add(l, bold, block_at(t, row, c)->off, ": ", 2);
        (void)ui_md_flatten(l, block_at(t, row, c), (UiInk){ 0 });
    }
    for (size_t off = 0; off < l->flat.len;) {
        const int hang = off > 0 && room > 4 ? 2 : 0;
        UiLine line;
        unsigned indent;
        const size_t next = ui_wrap_next(ui_buf_str(&l->flat), l->flat.len, off, 0, room - hang, &line,
                                         &indent);
        const int col = ui_md_open_row(l, box, block_at(t, row, c)->off);
        (void)ui_md_put_flat(l, col + hang, line.off, line.off + line.len);
        off = next;
    }
}

static void as_lists(Table *t) {
    for (size_t r = t->rows > 1 ? 1 : 0; r < t->rows; r++) {
        if (r > 1) (void)ui_md_open_row(t->l, t->head->box, block_at(t, r, 0)->off);
        for (size_t c = 0; c < t->columns; c++) put_entry(t, r, c);
    }
}

void ui_md_table(UiMdLay *l, size_t i) {
    const UiMdBlock *head = &l->d->blocks[i];
    size_t cells = 0; /* of a table that is cut there may be fewer */
    while (i + 1 + cells < l->d->n_blocks && head[1 + cells].kind == UI_MD_CELL) cells++;
    Table t = { .l = l, .head = head, .columns = head->columns };
    t.rows = t.columns > 0 ? cells / t.columns : 0;
    if (t.rows == 0) return;
    t.cells = calloc(t.rows * t.columns, sizeof *t.cells);
    t.natural = calloc(t.columns, sizeof *t.natural);
    t.width = calloc(t.columns, sizeof *t.width);
    t.at = calloc(t.columns, sizeof *t.at);
    if (t.cells && t.natural && t.width && t.at) {
        measure(&t);
        if (fit(&t, ui_md_room(l, head->box)))
            as_columns(&t);
        else
            as_lists(&t);
    } else {
        l->r->failed = true;
    }
    free(t.cells);
    free(t.natural);
    free(t.width);
    free(t.at);
}
