/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/window.h"

#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_MAX 1000

bool ui_window_size(size_t max_cells, int *rows, int *cols) {
    struct winsize ws = { 0 };
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) != 0 || ws.ws_row == 0 || ws.ws_col == 0) {
        ws.ws_row = 24;
        ws.ws_col = 80;
    }
    *cols = ws.ws_col < COLUMNS_MAX ? ws.ws_col : COLUMNS_MAX;
    const int most = (int)(max_cells / (size_t)*cols);
    *rows = ws.ws_row < most ? ws.ws_row : most;
    return *rows < ws.ws_row || *cols < ws.ws_col;
}
