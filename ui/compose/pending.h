/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rows above the input: queued messages, and the files that the message names. One thread. */
#ifndef QSF_UI_ABOVE_H
#define QSF_UI_ABOVE_H

#include "ui/app.h"
#include "ui/canvas.h"

/* How many rows there are in a window of this height. */
int ui_pending_rows(const UiApp *a, int rows);
/* Draws them, starting at `row`. */
void ui_pending_draw(UiCanvas *c, const UiApp *a, int row, int rows, int cols);

#endif
