/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rows above the input: queued messages. One thread. */
#ifndef QSF_UI_ABOVE_H
#define QSF_UI_ABOVE_H

#include "ui/app.h"
#include "ui/canvas.h"

/* How many rows there are in a window of this height. */
int ui_above_rows(const UiApp *a, int rows);
/* Draws n rows, starting at `row`. */
void ui_above_draw(UiCanvas *c, const UiApp *a, int row, int n, int cols);

#endif
