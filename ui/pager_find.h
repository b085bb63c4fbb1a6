/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Searching in the text of the pager. One thread. */
#ifndef QSF_UI_PAGER_FIND_H
#define QSF_UI_PAGER_FIND_H

#include "qsf_search.h"
#include "ui/canvas.h"
#include "ui/keys.h"

/* Zeroed nothing is searched for. */
typedef struct UiPagerFind {
    QSFSearch *search;
    bool typing;       /* the expression is being typed */
    UiBuf typed;       /* it, or that of the search */
    size_t *all;       /* (n) where it is found in the text, in order */
    size_t n, cap, at; /* at: the current place */
    bool stale;        /* the text is another one */
    bool go;           /* the current place should come into view */
    char problem[300]; /* why nothing is marked, "" = something is */
} UiPagerFind;

/* Asks for an expression. */
void ui_pager_find_begin(UiPagerFind *f);
/* While the expression is typed, and for n, N and Esc while places are marked; false: the key means what it
 * does without a search. */
bool ui_pager_find_key(UiPagerFind *f, const UiKey *k);
/* Adds pasted text, up to the end of its line, to the expression that is being typed. */
void ui_pager_find_paste(UiPagerFind *f, const char *text, size_t len);
/* Finds the places in text[0..len) again if they are not known; the current one is then the first one at or
 * after `from`. */
void ui_pager_find_update(UiPagerFind *f, const char *text, size_t len, size_t from);
/* What the last row shows of it at (row, 1); false: there is no search. */
bool ui_pager_find_draw(const UiPagerFind *f, UiCanvas *c, int row, int cols);
void ui_pager_find_end(UiPagerFind *f);

#endif
