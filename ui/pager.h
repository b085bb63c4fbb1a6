/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A text over the transcript that can be scrolled: the help, and output of commands that is longer than the screen. One
 * thread. */
#ifndef QSF_UI_PAGER_H
#define QSF_UI_PAGER_H

#include "ui/canvas.h"
#include "ui/keys.h"

typedef struct UiPager {
    bool open;
    bool help;         /* shows the help, which is made for the width */
    int top;           /* first line shown */
    UiBuf title, text; /* cleaned */
} UiPager;

void ui_pager_free(UiPager *p);
/* Shows the help. */
void ui_pager_help(UiPager *p);
/* Shows a copy of text, which may be shown as it is, under title. */
void ui_pager_show(UiPager *p, const char *title, const char *text, size_t len);
/* Arrows and pages scroll, ^L only redraws, any other key closes it; rows is what it is drawn in. */
void ui_pager_key(UiPager *p, const UiKey *k, int rows);
/* Draws it into rows from row on, over the whole width. */
void ui_pager_draw(UiPager *p, UiCanvas *c, int row, int rows, int cols);
/* Screen lines that text takes at that width. */
int ui_pager_lines(const char *text, size_t len, int cols);

#endif
