/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An answer as rows of the screen while it is being written. Of parts that are complete only the number of
 * their rows is kept; the rows of those near the window are made again when they are drawn. One thread. */
#ifndef QSF_UI_MD_ANSWER_H
#define QSF_UI_MD_ANSWER_H

#include "ui/md/layout.h"
#include "ui/md/split.h"

typedef struct UiMdAnswer {
    UiMdSplit split;     /* the parts */
    UiCodeState *states; /* (n_states) of highlighting, where code continues in the next part */
    size_t n_states, cap_states;
    UiBuf links;            /* definitions of links, each as a paragraph */
    size_t n_links;         /* bytes of them that the rows were made with: 0 while the answer is open */
    size_t done, done_rows; /* parts that can no longer change, and their rows */
    size_t done_codes;      /* blocks of code that begin in them */
    size_t rows;            /* of all parts */
    size_t len;             /* of the text */
    bool closed;
    UiMdLook look;
    unsigned long made;    /* changes when all rows are made again; never that of another answer */
    size_t hint, hint_row; /* a part and its first row, where the last search ended */
} UiMdAnswer;

/* Rows of parts that were drawn recently, and what layout needs. */
typedef struct UiMdCache {
    struct UiMdSlot *slots; /* (n) */
    size_t n;
    unsigned long now, made; /* number of the frame; last UiMdAnswer.made */
    UiMdLay lay;
    UiMdDoc doc;
    UiBuf text;
    UiMdRows scratch;
} UiMdCache;

/* Updates the rows for a text that begins with the one of the last call (another one: a->len is larger than
 * len, or a was closed), and for what the screen can show. open: more may follow. Without memory rows are
 * missing, and the next call tries again. */
void ui_md_answer_sync(UiMdAnswer *a, UiMdCache *cache, const char *text, size_t len, bool open,
                       const UiMdLook *look);
void ui_md_answer_free(UiMdAnswer *a);
/* Where row k begins in the text. */
size_t ui_md_answer_source(UiMdAnswer *a, UiMdCache *cache, const char *text, size_t k);
/* The last row that begins at or before text[off]. */
size_t ui_md_answer_row(UiMdAnswer *a, UiMdCache *cache, const char *text, size_t off);
/* The first row at or after `row` (by 1), or the last one before it (by -1), with which a block of code
 * begins; false if there is none. */
bool ui_md_answer_code(UiMdAnswer *a, UiMdCache *cache, const char *text, size_t row, int by, size_t *found);
/* Draws row k at (row, col) up to column end; returns the column after it. faint: all of it in
 * UI_STYLE_DIM. */
int ui_md_answer_draw(UiMdAnswer *a, UiMdCache *cache, const char *text, size_t k, UiCanvas *c, int row,
                      int col, int end, bool faint);
/* Begins a frame: rows that were not used in the last one may be dropped. */
void ui_md_cache_frame(UiMdCache *cache);
void ui_md_cache_free(UiMdCache *cache);

#endif
