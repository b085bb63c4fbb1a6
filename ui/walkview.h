/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of tokens at a place of the last answer, above the input, and its keys. */
#ifndef QSF_UI_WALKVIEW_H
#define QSF_UI_WALKVIEW_H

#include "ui/screen.h"

/* Alt-, and Alt-. begin to walk; while walking, all its keys. false: the key is for something else. */
bool ui_walk_key(UiScreen *s, const UiKey *k);
/* Moves the token into view after it has changed. */
void ui_walk_show(UiScreen *s);
/* Rows of the list in a window of that height; 0 while nothing is walked. */
int ui_walk_panel_rows(const UiApp *a, int rows);
void ui_walk_draw(UiCanvas *c, const UiApp *a, int row, int rows, int cols);

#endif
