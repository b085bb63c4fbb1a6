/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Programs that set the clipboard. One thread. */
#ifndef QSF_UI_CLIPTOOL_H
#define QSF_UI_CLIPTOOL_H

#include <stdbool.h>
#include <stddef.h>

/* Starts the first program that works and returns its name. Waits at most a tenth of a second for its end;
 * one that needs longer counts as working. NULL if there is none: err says why, "" if none is installed. */
const char *ui_cliptool_set(const char *text, size_t len, char *err, size_t cap);
/* Ends those that are still running. */
void ui_cliptool_close(void);

#endif
