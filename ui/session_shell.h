/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sessions for the shell, without a model: --list-sessions and --print-session. One thread. */
#ifndef QSF_UI_SESSION_SHELL_H
#define QSF_UI_SESSION_SHELL_H

#include <stddef.h>
#include <stdint.h>

/* Prints a line for each session to standard output, newest first: name, title, model, messages, age, size;
 * with an expression (NULL = none) for those in which it is found. On a terminal these are columns, age and
 * size are rounded, and the title is cut to fit; otherwise fields separated by tabs, with the age in seconds
 * and the size in bytes. Control characters are visible marks. Returns the exit status; on failure a message
 * is in err. */
int ui_sessions_print(const char *expression, char *err, size_t cap);
/* Prints a session as Markdown to standard output, control characters as visible marks. Its messages, without
 * their texts, take what a budget (bytes, 0 = none) leaves beside the program, at most 256 MB. Returns the
 * exit status; on failure a message is in err. */
int ui_session_print(const char *name, uint64_t budget, char *err, size_t cap);

#endif
