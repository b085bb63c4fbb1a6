/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Exports the conversation to a file for other programs and people. */
#ifndef QSF_UI_EXPORT_H
#define QSF_UI_EXPORT_H

#include "ui/app.h"

/* Writes the messages to path as Markdown (.md), plain text (.txt) or JSON (.json) by its name. An existing
 * file is only replaced with overwrite. path is either the complete new file or unchanged. Returns false with
 * a message that names path. */
bool ui_export(const UiApp *a, const char *path, bool overwrite, char *err, size_t cap);

#endif
