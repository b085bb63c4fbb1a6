/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The window of the terminal. */
#ifndef QSF_UI_WINDOW_H
#define QSF_UI_WINDOW_H

#include <stdbool.h>
#include <stddef.h>

/* The part of it that is used now, in cells: at most max_cells and 1000 columns, 80x24 where its size is not
 * known. Returns whether the window is larger. Any thread. */
bool ui_window_size(size_t max_cells, int *rows, int *cols);

#endif
