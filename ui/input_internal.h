/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the input*.c files that use readline. */
#ifndef QSF_UI_INPUT_INTERNAL_H
#define QSF_UI_INPUT_INTERNAL_H

#include <stdbool.h>

struct UiApp;

/* Moves the cursor to the line of the message above (-1) or below (1); false: there is none. */
bool ui_input_move_line(int by);
/* Home, End, ^A, ^E, ^K, ^U and ^W, and what else the user has bound to their functions: they work on the
 * line of the message in which the cursor is, and pressed again on the whole message. */
void ui_input_bind_lines(void);

/* ---- input_common.c */

/* Settings that readline needs before it is initialized: no signals and no environment of its own, no inputrc
 * that is a FIFO. */
void ui_input_set_up(void);
/* Its variables, and the keys of both input lines. pastes: it recognizes them by itself. */
void ui_input_set_variables(bool pastes);
/* Reads the history from path; NULL: there is no file. With no_save of the app it is only read. */
void ui_input_history_open(const char *path, const struct UiApp *app);
void ui_input_history_close(void);
/* Is it a text that the last entry of the history does not have? */
bool ui_input_is_new(const char *line);
/* Adds such a line to the history and its file. */
void ui_input_remember(const char *line);

#endif
