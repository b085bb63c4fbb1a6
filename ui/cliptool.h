/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Programs that set the clipboard. One thread. */
#ifndef QSF_UI_CLIPTOOL_H
#define QSF_UI_CLIPTOOL_H

#include <stdbool.h>
#include <stddef.h>

/* How long all programs together may take until one is considered to work: less than a tenth of a second.
 * Tests that look at how they end wait longer. */
#define UI_TOOL_SECONDS 0.09
extern double ui_cliptool_seconds;

/* Starts the first program that works and returns its name; one that does not end in time counts as working,
 * and may still read the text when this program has ended. One that an earlier call has started is ended.
 * NULL if there is none: err says why, "" if none is installed. */
const char *ui_cliptool_set(const char *text, size_t len, char *err, size_t cap);

#endif
