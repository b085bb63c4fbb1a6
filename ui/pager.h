/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A text over the transcript that can be scrolled: the help, and output of commands that is longer
 * than the screen. One thread. */
#ifndef QSF_UI_PAGER_H
#define QSF_UI_PAGER_H

#include "ui/canvas.h"
#include "ui/keys.h"
#include "ui/pager_find.h"

typedef struct UiPager {
    bool open;
    bool help;         /* shows the help, which depends on the width */
    int top;           /* first line shown */
    UiBuf title, text; /* cleaned */
    const char *asks;  /* the keys of a question about it, static: it stays open; NULL = none */
    int width;         /* the help was made for it */
    UiPagerFind find;
} UiPager;

void ui_pager_free(UiPager *p);
/* Shows the help. */
void ui_pager_help(UiPager *p);
/* Shows a copy of text, which must be cleaned already, under title. */
void ui_pager_show(UiPager *p, const char *title, const char *text, size_t len);
/* Arrows and pages scroll, / and ^F search, n and N go to other places, ^L only redraws, any other key closes
 * it; rows is its height. */
void ui_pager_key(UiPager *p, const UiKey *k, int rows);
/* Adds a paste to the expression that is being typed; closes it otherwise: false. */
bool ui_pager_paste(UiPager *p, const char *text, size_t len);
/* Draws it at `row` and below, over the whole width. */
void ui_pager_draw(UiPager *p, UiCanvas *c, int row, int rows, int cols);
/* Number of screen lines of text at that width. */
int ui_pager_lines(const char *text, size_t len, int cols);

#endif
