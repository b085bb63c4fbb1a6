/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A screen in memory. */
#include "ui/canvas.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "qsf_text.h"
#include "ui/wrap.h"

#define UI_URL_MAX 2083 /* of what terminals take as one */

static UiCell *cell_at(UiCanvas *c, int row, int col) {
    if (row < 0 || col < 0 || row >= c->rows || col >= c->cols) return NULL;
    return &c->cells[(size_t)row * (size_t)c->cols + (size_t)col];
}

static void cell_set(UiCell *cell, const char *s, size_t len, int width, UiInk ink) {
    if (len > UI_CELL_TEXT) len = UI_CELL_TEXT;
    memcpy(cell->text, s, len);
    cell->len = (uint8_t)len;
    cell->width = (uint8_t)width;
    cell->ink = ink;
}

static void blank(UiCanvas *c, int row, int col, int end, UiInk ink) {
    for (; col < end; col++) {
        UiCell *cell = cell_at(c, row, col);
        if (cell) cell_set(cell, " ", 1, 1, ink);
    }
}

static void clear(UiCanvas *c) {
    for (int row = 0; row < c->rows; row++) ui_canvas_fill(c, row, 0, c->cols, UI_STYLE_TEXT);
    c->cursor_row = -1;
    c->cursor_col = 0;
    c->n_links = 0;
    ui_buf_clear(&c->urls);
}

bool ui_canvas_resize(UiCanvas *c, int rows, int cols) {
    if (rows < 1 || cols < 1 || rows > 2000 || cols > 2000) rows = cols = 1;
    if (rows != c->rows || cols != c->cols) {
        free(c->cells);
        c->cells = calloc((size_t)rows * (size_t)cols, sizeof *c->cells);
        c->rows = c->cells ? rows : 0;
        c->cols = c->cells ? cols : 0;
    }
    clear(c);
    return c->cells != NULL;
}

void ui_canvas_free(UiCanvas *c) {
    free(c->cells);
    free(c->links);
    ui_buf_free(&c->urls);
    *c = (UiCanvas){ .unicode = c->unicode };
}

/* A mark that combines with the character before it is added to its cell if there is space. */
static void combine(UiCanvas *c, int row, int col, const char *s, size_t len) {
    UiCell *cell = cell_at(c, row, col - 1);
    if (cell && cell->len == 0) cell = cell_at(c, row, col - 2);
    if (cell && cell->len + len <= UI_CELL_TEXT) {
        memcpy(cell->text + cell->len, s, len);
        cell->len = (uint8_t)(cell->len + len);
    }
}

/* The longest prefix of a cluster that fits into a cell, whole characters only. */
static size_t fit(const char *s, size_t len) {
    if (len <= UI_CELL_TEXT) return len;
    size_t n = UI_CELL_TEXT;
    while (n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80) n--;
    return n;
}

static bool is_plain(const char *s, size_t n) { return n == 1 && ((*s >= 0x20 && *s < 0x7f) || *s == '\t'); }

/* The mark of a cluster that must not reach the terminal, in dst (QSF_CLEAN_MAX(UI_CELL_TEXT)); 0: it may. */
static size_t mark_of(const char *s, size_t n, char *dst) {
    QSFClean state = { 0 };
    if (n > UI_CELL_TEXT) n = fit(s, n);
    size_t marked = qsf_clean(&state, s, n, true, dst);
    return marked != n || memcmp(dst, s, n) != 0 ? marked : 0;
}

int ui_canvas_ink(UiCanvas *c, int row, int col, int end, UiInk ink, const char *s, size_t len) {
    int start = col;
    char mark[QSF_CLEAN_MAX(UI_CELL_TEXT)];
    if (end > c->cols) end = c->cols;
    while (len > 0 && *s != '\n') {
        int cells = 0;
        size_t n = ui_wrap_step(s, len, col - start, &cells), m = is_plain(s, n) ? 0 : mark_of(s, n, mark);
        if (m > 0) {
            col = ui_canvas_ink(c, row, col, end, ink, mark, m);
            s += n;
            len -= n;
            continue;
        }
        if (n == 0 || col + cells > end) break;
        if (*s == '\t') {
            blank(c, row, col, col + cells, ink);
        } else if (cells == 0) {
            combine(c, row, col, s, n);
        } else {
            UiCell *cell = cell_at(c, row, col);
            if (cell) cell_set(cell, s, fit(s, n), cells, ink);
            for (int k = 1; k < cells && (cell = cell_at(c, row, col + k)) != NULL; k++)
                cell_set(cell, "", 0, 0, ink);
        }
        col += cells;
        s += n;
        len -= n;
    }
    return col;
}

int ui_canvas_put(UiCanvas *c, int row, int col, int end, UiStyle style, const char *s, size_t len) {
    return ui_canvas_ink(c, row, col, end, (UiInk){ .style = (uint8_t)style }, s, len);
}

int ui_canvas_puts(UiCanvas *c, int row, int col, int end, UiStyle style, const char *s) {
    return ui_canvas_put(c, row, col, end, style, s, strlen(s));
}

int ui_canvas_printf(UiCanvas *c, int row, int col, int end, UiStyle style, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    (void)qsf_text_vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return ui_canvas_puts(c, row, col, end, style, text);
}

void ui_canvas_fill(UiCanvas *c, int row, int col, int end, UiStyle style) {
    blank(c, row, col, end, (UiInk){ .style = (uint8_t)style });
}

/* Only printable ASCII: the URL is part of a control sequence. */
bool ui_canvas_may_link(const char *url, size_t len) {
    static const char *const schemes[] = { "http://", "https://", "ftp://", "mailto:" };
    bool known = false;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        const size_t n = strlen(schemes[i]);
        known = known || (len > n && strncasecmp(url, schemes[i], n) == 0);
    }
    for (size_t i = 0; i < len; i++) known = known && url[i] > ' ' && url[i] < 0x7f;
    return known && len <= UI_URL_MAX;
}

uint16_t ui_canvas_link(UiCanvas *c, const char *url) {
    if (!ui_canvas_may_link(url, strlen(url))) return 0;
    const size_t last = c->n_links > 0 ? c->links[c->n_links - 1] : 0;
    if (c->n_links > 0 && strcmp(ui_buf_str(&c->urls) + last, url) == 0) return (uint16_t)c->n_links;
    if (c->n_links == c->cap_links) {
        const size_t cap = c->cap_links ? c->cap_links * 2 : 16;
        uint32_t *p = c->n_links < UINT16_MAX / 2 ? realloc(c->links, cap * sizeof *p) : NULL;
        if (!p) return 0;
        c->links = p;
        c->cap_links = cap;
    }
    const size_t at = c->urls.len;
    if (!ui_buf_add(&c->urls, url, strlen(url) + 1)) return 0;
    c->links[c->n_links++] = (uint32_t)at;
    return (uint16_t)c->n_links;
}

const char *ui_canvas_url(const UiCanvas *c, uint16_t link) {
    return ui_buf_str(&c->urls) + c->links[link - 1];
}

void ui_canvas_hline(UiCanvas *c, int row, int col, int end, UiStyle style) {
    for (; col < end && col < c->cols; col++)
        ui_canvas_puts(c, row, col, col + 1, style, c->unicode ? "─" : "-");
}

void ui_canvas_vline(UiCanvas *c, int row, int end_row, int col, UiStyle style) {
    for (; row < end_row && row < c->rows; row++)
        ui_canvas_puts(c, row, col, col + 1, style, c->unicode ? "│" : "|");
}

void ui_canvas_bar(UiCanvas *c, int row, int col, int n, UiStyle style, double part) {
    static const char *const eighths[] = { " ", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    part = part > 0 ? part < 1 ? part : 1 : 0; /* NaN becomes 0 */
    if (!c->unicode) {
        ui_canvas_puts(c, row, col, c->cols, UI_STYLE_DIM, "[");
        ui_canvas_puts(c, row, col + n - 1, c->cols, UI_STYLE_DIM, "]");
        col++;
        n -= 2;
    }
    int steps = n > 0 ? (int)(part * n * 8 + 0.5) : 0;
    for (int i = 0; i < n; i++, steps -= 8) {
        if (steps >= 8)
            ui_canvas_puts(c, row, col + i, c->cols, style, c->unicode ? "█" : "#");
        else if (steps > 0 && c->unicode)
            ui_canvas_puts(c, row, col + i, c->cols, style, eighths[steps]);
        else
            ui_canvas_puts(c, row, col + i, c->cols, UI_STYLE_DIM, c->unicode ? "░" : steps >= 4 ? "=" : ".");
    }
}

void ui_canvas_text(const UiCanvas *c, int row, UiBuf *out) {
    size_t keep = out->len;
    for (int col = 0; row >= 0 && row < c->rows && col < c->cols; col++) {
        const UiCell *cell = &c->cells[(size_t)row * (size_t)c->cols + (size_t)col];
        ui_buf_add(out, cell->text, cell->len);
        if (cell->len != 1 || cell->text[0] != ' ') keep = out->len;
    }
    out->len = keep;
    if (out->data) out->data[keep] = '\0';
}
