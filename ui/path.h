/* SPDX-License-Identifier: GPL-3.0-or-later */
/* File names as typed by the user. Any thread. */
#ifndef QSF_UI_PATH_H
#define QSF_UI_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* malloc'ed: "~/" becomes the home directory, quotes around the whole name and backslashes before blanks are
 * removed. */
char *ui_path_expand(const char *typed);
/* Calls fn for the entries of the directory that begin with the last part of typed; is_dir marks directories.
 * name is the whole path as it would be typed. Hidden files only if the last part begins with a dot. At most
 * max. */
void ui_path_match(const char *typed, void (*fn)(void *arg, const char *name, bool is_dir), void *arg,
                   size_t max);

#endif
