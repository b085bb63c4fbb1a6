/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A screen in memory: everything is drawn on it, then a terminal shows it. Drawing outside of it is clipped,
 * so that no caller needs to know how small a window is. One thread. */
#ifndef QSF_UI_CANVAS_H
#define QSF_UI_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/buf.h"
#include "ui/theme.h"

#define UI_CELL_TEXT 36 /* bytes of a cluster: two people of the same emoji have 35 */

/* How text is drawn. */
typedef struct UiInk {
    uint8_t style; /* UiStyle */
    uint8_t attrs; /* UI_ATTR_*, added to those of the style */
    uint16_t link; /* ui_canvas_link, 0 = none */
} UiInk;

/* Maximum size of a screen, which takes memory for each cell: 640 columns and 200 rows. */
#define UI_CELLS_MAX ((size_t)128 << 10)

typedef struct UiCell {
    char text[UI_CELL_TEXT]; /* one grapheme cluster, (len) bytes; len 0: right half of the cell before it */
    uint8_t len, width;
    UiInk ink;
} UiCell;

typedef struct UiCanvas {
    UiCell *cells; /* (rows, cols) */
    int rows, cols;
    int cursor_row, cursor_col; /* row -1: hidden */
    bool unicode;               /* boxes, bars and dots may be drawn with characters outside of ASCII */
    UiBuf urls;                 /* of its links, each with a NUL */
    uint32_t *links;            /* (n_links) offsets in urls */
    size_t n_links, cap_links;
} UiCanvas;

/* Sets the size and blanks it. false without memory: the canvas is then 0x0. */
bool ui_canvas_resize(UiCanvas *c, int rows, int cols);
void ui_canvas_free(UiCanvas *c);
/* Draws text from (row, col) up to, not including, column end; returns the next column. '\n' ends it.
 * Text that does not fit is truncated. Text of files and models should be cleaned before, so that its
 * width is known; what was not is drawn as marks all the same (qsf_text.h): nothing else than the
 * canvas reaches the terminal. */
int ui_canvas_put(UiCanvas *c, int row, int col, int end, UiStyle style, const char *s, size_t len);
int ui_canvas_puts(UiCanvas *c, int row, int col, int end, UiStyle style, const char *s);
int ui_canvas_printf(UiCanvas *c, int row, int col, int end, UiStyle style, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
/* The same with attributes and a link. */
int ui_canvas_ink(UiCanvas *c, int row, int col, int end, UiInk ink, const char *s, size_t len);
/* May a terminal be told this URL? http, https, ftp and mailto, ASCII without blanks and controls. */
bool ui_canvas_may_link(const char *url, size_t len);
/* The number of a URL for UiInk.link, until the canvas is blanked; 0 without memory, or if it may not be
 * one. */
uint16_t ui_canvas_link(UiCanvas *c, const char *url);
/* The URL of a number that is not 0. */
const char *ui_canvas_url(const UiCanvas *c, uint16_t link);
/* Cells [col, end) of one style, blank. */
void ui_canvas_fill(UiCanvas *c, int row, int col, int end, UiStyle style);
void ui_canvas_hline(UiCanvas *c, int row, int col, int end, UiStyle style);
void ui_canvas_vline(UiCanvas *c, int row, int end_row, int col, UiStyle style);
/* A bar of n cells that shows part (0..1), in brackets if there are no block characters. */
void ui_canvas_bar(UiCanvas *c, int row, int col, int n, UiStyle style, double part);
/* Appends row as text, without trailing blanks. For tests. */
void ui_canvas_text(const UiCanvas *c, int row, UiBuf *out);

#endif
