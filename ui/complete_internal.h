/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the complete*.c files only. */
#ifndef QSF_UI_COMPLETE_INTERNAL_H
#define QSF_UI_COMPLETE_INTERNAL_H

#include "ui/app.h"
#include "ui/complete.h"

/* Adds a choice, unless it cannot be typed or there are UI_CHOICES already. */
void ui_complete_add(UiCompletion *c, const char *text, const char *after, const char *help);
/* Is this name one of those that are looked for now (UiCompletion.at)? help: NULL = it does not count. */
bool ui_complete_fits(const UiCompletion *c, const char *name, const char *help, const char *word,
                      size_t len);
/* Adds the known values of a setting that begin with word. a may be NULL. */
void ui_complete_values(UiCompletion *c, const UiApp *a, const char *setting, const char *word, size_t len);

#endif
