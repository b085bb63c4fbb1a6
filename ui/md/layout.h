/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Markdown as rows of the screen, by terminal cells. One thread per UiMdLay. */
#ifndef QSF_UI_MD_LAYOUT_H
#define QSF_UI_MD_LAYOUT_H

#include "ui/code/highlight.h"
#include "ui/md/parse.h"
#include "ui/md/rows.h"

/* What the terminal can show. */
typedef struct UiMdLook {
    int width;
    bool unicode;   /* bars, bullets and boxes outside of ASCII */
    bool links;     /* texts with URLs behind them: otherwise URLs are shown */
    bool strike;    /* text can be struck through: otherwise ~~ is shown */
    unsigned codes; /* blocks of code in the answers before this one */
} UiMdLook;

/* Text of one ink in the flat text of a block; it ends where the next piece begins. */
typedef struct UiMdPiece {
    uint32_t off, src;
    UiInk ink;
} UiMdPiece;

/* Layout at work; its memory is used again. */
typedef struct UiMdLay {
    UiMdRows *r;
    const UiMdDoc *d;
    const char *text; /* of d */
    size_t src;       /* where text is in the source */
    UiMdLook look;
    unsigned codes;    /* blocks of code of this answer before d */
    bool above;        /* there are rows above */
    bool after_block;  /* the last of them are of a table or of code */
    UiBuf flat;        /* text of blocks without marks */
    UiMdPiece *pieces; /* (n_pieces) of flat */
    size_t n_pieces, cap_pieces;
    bool *marked; /* (d->n_boxes) the mark of the item is shown */
    size_t cap_marked;
} UiMdLay;

/* Appends the rows of l->d to l->r; blank: a blank line is before it. */
void ui_md_layout(UiMdLay *l, bool blank);
void ui_md_layout_free(UiMdLay *l);

/* ---- shared by the files of the layout ---- */

/* Begins a row with the bars and marks of box and what it is in; returns the column of its text. */
int ui_md_open_row(UiMdLay *l, uint32_t box, size_t src);
/* Columns for text in a box, at least 1. */
int ui_md_room(const UiMdLay *l, uint32_t box);
/* Appends the runs of a block to the flat text, with base for what has no style of its own. Returns its
 * start. */
size_t ui_md_flatten(UiMdLay *l, const UiMdBlock *b, UiInk base);
/* Appends other text to it. */
void ui_md_flat_add(UiMdLay *l, UiInk ink, size_t src, const char *s, size_t len);
/* Puts flat[from, to) into the last row, at column col; returns the column after it. */
int ui_md_put_flat(UiMdLay *l, int col, size_t from, size_t to);
/* Where flat[at] is in the text. */
size_t ui_md_source_of(const UiMdLay *l, size_t at);
/* Puts n times s, one cell wide. */
int ui_md_repeat(UiMdLay *l, int col, int n, UiStyle style, const char *s);
/* A table: block i and the cells after it. */
void ui_md_table(UiMdLay *l, size_t i);
/* The line above a block of code: its language and its number. */
void ui_md_code_head(UiMdLay *l, uint32_t box, const char *info, size_t len, unsigned number, size_t src);
/* A line of code. x: NULL = no highlighting. */
void ui_md_code_line(UiMdLay *l, uint32_t box, const char *line, size_t len, const UiLexer *x,
                     UiCodeState *state, size_t src);

#endif
