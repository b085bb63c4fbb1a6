/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the input*.c files that use readline. */
#ifndef QSF_UI_INPUT_INTERNAL_H
#define QSF_UI_INPUT_INTERNAL_H

#include <stdbool.h>

/* Moves the cursor to the line of the message above (-1) or below (1); false: there is none. */
bool ui_input_move_line(int by);
/* Home, End, ^A, ^E, ^K, ^U and ^W, and what else the user has bound to their functions: they work on the
 * line of the message in which the cursor is, and pressed again on the whole message. */
void ui_input_bind_lines(void);

#endif
