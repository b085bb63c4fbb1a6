/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of the screen: spans of text in one style. The text is copied: rows exist only for what is near the
 * window. One thread. */
#ifndef QSF_UI_MD_ROWS_H
#define QSF_UI_MD_ROWS_H

#include <stdint.h>

#include "ui/canvas.h"

typedef struct UiMdSpan {
    uint32_t off, len; /* of UiMdRows.text */
    uint16_t col;
    UiInk ink; /* link: of UiMdRows.links */
} UiMdSpan;

typedef struct UiMdRow {
    uint32_t span, n; /* spans [span, span + n) */
    uint32_t src;     /* where its text is in the source */
    bool code;        /* a block of code begins with it */
} UiMdRow;

/* A zeroed one has no rows. failed: there was no memory for some. */
typedef struct UiMdRows {
    UiMdRow *rows;   /* (n) */
    UiMdSpan *spans; /* (n_spans) */
    uint32_t *links; /* (n_links) offsets of URLs in text, each with a NUL; [0] stands for none */
    size_t n, n_spans, n_links, cap, cap_spans, cap_links;
    UiBuf text;
    int end; /* column after the last span */
    bool failed;
} UiMdRows;

/* Without rows, but with their memory. */
void ui_md_rows_clear(UiMdRows *r);
void ui_md_rows_free(UiMdRows *r);
/* Begins a row. */
void ui_md_rows_add(UiMdRows *r, size_t src);
/* Adds text to the last row, at column col; returns the column after it. Tabs become blanks. */
int ui_md_rows_put(UiMdRows *r, int col, UiInk ink, const char *s, size_t len);
/* The number of a URL for spans; 0 without memory. */
uint16_t ui_md_rows_link(UiMdRows *r, const char *url, size_t len);
/* Draws row k at (row, col), up to column end; returns the column after it. faint: everything in
 * UI_STYLE_DIM. */
int ui_md_rows_draw(const UiMdRows *r, size_t k, UiCanvas *c, int row, int col, int end, bool faint);

#endif
