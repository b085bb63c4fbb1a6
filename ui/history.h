/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The history file: one input per line, newlines written as \n and backslashes as \\, so that messages over
 * several lines are restored. Mode 0600. One thread. */
#ifndef QSF_UI_HISTORY_H
#define QSF_UI_HISTORY_H

#include <stdbool.h>
#include <stddef.h>

#define UI_HISTORY_MAX 1000

/* Calls fn for the last UI_HISTORY_MAX entries, oldest first. A file that grew far larger is truncated to
 * them. */
void ui_history_read(const char *path, void (*fn)(void *arg, const char *entry), void *arg);
/* Appends one entry. Returns false if it could not be written. */
bool ui_history_append(const char *path, const char *entry);

#endif
