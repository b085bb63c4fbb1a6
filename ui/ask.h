/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The question at a full context without an eviction policy: the answer is not finished, and the user chooses how it
 * continues. Asked on the full screen and in line mode on a terminal, never in a pipe. One thread. */
#ifndef QSF_UI_ASK_H
#define QSF_UI_ASK_H

#include "ui/app.h"

/* Asks, with what each choice costs; what is impossible is not offered. The last answer must have ended because the
 * context is full. */
void ui_ask(UiApp *a);
/* Whether the question waits for a choice. */
bool ui_ask_open(const UiApp *a);
/* Takes the choice '1' to '5'; false if the question is not open, or for another key. An impossible choice is
 * reported, and the question stays open. */
bool ui_ask_key(UiApp *a, char key);
/* The answer stays as it is; the question is over. */
void ui_ask_stop(UiApp *a);
/* A new plan was applied, or refused: an enlarged context or a policy continues the answer. */
void ui_ask_planned(UiApp *a, bool ok);
/* Commands have changed the plan or the conversation: the choices are what is possible now. If there is space again, the
 * question is over. */
void ui_ask_refresh(UiApp *a);

#endif
