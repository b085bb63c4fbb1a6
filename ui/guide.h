/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The built-in guide, the default model: its first screen. One thread. */
#ifndef QSF_UI_GUIDE_H
#define QSF_UI_GUIDE_H

#include "ui/app.h"

#define UI_GUIDE_QUESTIONS 3

/* Loads the guide, because no model was given; reports if it is not installed. */
void ui_guide_open(UiApp *a);
/* Whether path (of UiApp.model_path) is the guide. */
bool ui_guide_is(const char *path);
/* Prints on the full screen what the guide is and what to do next. */
void ui_guide_welcome(UiApp *a);
/* A model was loaded. When it replaces the guide, or the guide replaces it, the new one does not get the
 * conversation: an empty one starts, the messages stay on the screen, and a notice says so. */
void ui_guide_switch(UiApp *a);
/* Reports what to do when its file could not be loaded. */
void ui_guide_failed(UiApp *a);
/* Returns whether the guide is loaded and has not been asked anything yet: questions are offered then. */
bool ui_guide_offers(const UiApp *a);
/* Question i < UI_GUIDE_QUESTIONS, the most useful one first. */
const char *ui_guide_question(size_t i);
/* The line after Tab: the first question for an empty line, the next question for an offered one; NULL if Tab
 * has its usual meaning. */
const char *ui_guide_next(const UiApp *a, const char *line, size_t len);

#endif
