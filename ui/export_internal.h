/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the export*.c files only. */
#ifndef QSF_UI_EXPORT_INTERNAL_H
#define QSF_UI_EXPORT_INTERNAL_H

#include "ui/app.h"

/* Each appends the conversation. */
void ui_export_as_markdown(const UiApp *a, UiBuf *b);
void ui_export_as_text(const UiApp *a, UiBuf *b);
void ui_export_as_json(const UiApp *a, UiBuf *b);
void ui_export_as_html(const UiApp *a, UiBuf *b);

/* The title of the session or its name, or a word for one without. */
const char *ui_export_title(const UiApp *a);
/* "You", or the model that answered. */
const char *ui_export_speaker(const UiItem *it);
/* The time as in ISO 8601, "" if it is unknown. */
void ui_export_time(double t, char *dst, size_t cap);
/* Calls put with the readable part of the reasoning. */
void ui_export_thought(UiBuf *b, const UiItem *thought, void (*put)(UiBuf *, const char *, size_t));

#endif
