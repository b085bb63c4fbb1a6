/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The line mode on a terminal: the user's editor, and lines that were typed while an answer was written. One
 * thread. */
#ifndef QSF_UI_LINE_KEYS_H
#define QSF_UI_LINE_KEYS_H

#include "ui/app.h"

/* Has the user's editor change the line of readline. Returns the signal that ends the program meanwhile, or
 * 0. */
int ui_line_edit(UiApp *a);
/* An answer was stopped: nothing that was typed before is sent by itself. The lines come back to the input
 * or, without readline, wait as queued messages; rest: those that were read already. */
void ui_line_keep_typed(UiApp *a, const char *rest, size_t len);

/* Without readline the terminal has written "^C" on the line of the prompt: what follows begins a line. */
void ui_line_end_echo(void);

#endif
