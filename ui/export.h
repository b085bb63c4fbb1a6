/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Exports the conversation to a file for other programs and people. */
#ifndef QSF_UI_EXPORT_H
#define QSF_UI_EXPORT_H

#include "ui/app.h"

/* Writes the messages that the model sees to path, as Markdown (.md), plain text (.txt), JSON (.json) or
 * HTML (.html) by its name. An existing file is only replaced with overwrite. path is either the complete
 * new file or unchanged. Returns false with a message that names path. */
bool ui_export(const UiApp *a, const char *path, bool overwrite, char *err, size_t cap);
/* The same to a new file in the current folder, with a name from its title, the session or the time,
 * NAME-2 and so on if that exists. ending: a word for which ui_export_format is true. The name is written
 * to path (200 bytes or more). */
bool ui_export_new(const UiApp *a, const char *ending, char *path, size_t path_cap, char *err, size_t cap);
/* Whether word is one of the formats: md, txt, json, html. */
bool ui_export_format(const char *word);
/* Appends the conversation as Markdown; false without memory. */
bool ui_export_markdown(const UiApp *a, UiBuf *b);

#endif
