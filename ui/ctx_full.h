/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The question at a full context without an eviction policy: the answer is not finished, and the user chooses
 * how it continues. Asked on the full screen and in line mode on a terminal, never in a pipe. One thread. */
#ifndef QSF_UI_CTX_FULL_H
#define QSF_UI_CTX_FULL_H

#include "ui/app.h"

/* Asks, and shows the cost of each choice; only possible ones are offered. The last message must be an answer
 * that is not finished and has no space in the context. On the screen it replaces the question before it. */
void ui_ctx_full_ask(UiApp *a);
/* /continue: asks if the last answer is not finished and cannot continue, because the context is full; false:
 * nothing was asked. Not in a pipe. */
bool ui_ctx_full_ask_again(UiApp *a);
/* Whether the question waits for a choice. */
bool ui_ctx_full_open(const UiApp *a);
/* Whether this choice is made by its key alone: nothing is lost if it was the beginning of a message. */
bool ui_ctx_full_needs_no_enter(char key);
/* Writes the choices, "1 forget 4 stop", so that all of them fit in `room` cells: with shorter
 * names, or without. */
void ui_ctx_full_names(const UiApp *a, int room, char *dst, size_t cap);
/* The name of a choice that is offered, or NULL. */
const char *ui_ctx_full_name(const UiApp *a, char key);
/* Takes the choice '1' to '5'; false if the question is not open, or for another key. An impossible choice is
 * reported, and the question stays open. */
bool ui_ctx_full_key(UiApp *a, char key);
/* The answer stays as it is; the question is over. */
void ui_ctx_full_stop(UiApp *a);
/* The question is over, and leaves the screen. */
void ui_ctx_full_over(UiApp *a);
/* A request for an answer has ended: the question is over unless its answer is still the last message. */
void ui_ctx_full_answered(UiApp *a);
/* A new plan was applied, or refused: an enlarged context or a policy continues the answer. */
void ui_ctx_full_planned(UiApp *a, bool ok);
/* Commands have changed the plan or the conversation: the choices are now the possible ones. If there is
 * space again, the question is over. */
void ui_ctx_full_refresh(UiApp *a);

#endif
