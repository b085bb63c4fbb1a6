/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The built-in guide, the model of whoever has named none: its first screen. One thread. */
#ifndef QSF_UI_GUIDE_H
#define QSF_UI_GUIDE_H

#include "ui/app.h"

#define UI_GUIDE_QUESTIONS 3

/* Loads the guide because no model was named. Where its file is not there: says so. */
void ui_guide_open(UiApp *a);
/* path, as it stands in UiApp.model_path, means the guide. */
bool ui_guide_is(const char *path);
/* It is loaded: says on the full screen what it is and what to do next. */
void ui_guide_welcome(UiApp *a);
/* A model was loaded. When it replaces the guide, or the guide replaces it, the new one does not get the conversation:
 * an empty one begins, the messages stay on the screen, and this is said. */
void ui_guide_switch(UiApp *a);
/* Its file could not be loaded: says what to do. */
void ui_guide_failed(UiApp *a);
/* The guide is there and has not been asked anything: questions are offered. */
bool ui_guide_offers(const UiApp *a);
/* Question i < UI_GUIDE_QUESTIONS, the most useful one first. */
const char *ui_guide_question(size_t i);
/* What Tab makes of the line: the first question on an empty one, the next one of a question that was offered;
 * NULL when it has its usual meaning. */
const char *ui_guide_next(const UiApp *a, const char *line, size_t len);

#endif
