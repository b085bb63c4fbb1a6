/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Branches of a conversation: earlier versions of answers, and what was said after them, stay in the session
 * (ui/tree.h) and can be gone back to. Texts are read from the file again. One thread; not while the engine
 * works. */
#ifndef QSF_UI_BRANCHES_H
#define QSF_UI_BRANCHES_H

#include "ui/app.h"

#define UI_BY_TOKEN "token" /* a version that begins like another one, up to a token that the user chose */

/* A new version of an answer begins: `it`, which must be in the context, and what follows it leave the
 * conversation and stay in the session. by: the command, "retry", or UI_BY_TOKEN; it must stay valid. Then
 * ui_app_ask(a, false) asks for the version, and evaluates only what the versions do not have in common. The
 * part of it that is saved stays if the program is killed, and /undo goes back to the version before. */
void ui_app_branch_answer(UiApp *a, const UiItem *it, const char *by);
/* The same change goes back before it was finished: the answer that it replaced is back. false: no such
 * change is open, or its texts cannot be read (reported). */
bool ui_app_branch_back(UiApp *a);

/* Makes the conversation the one that ends at a spot of a->session.tree, with the branch that is open there
 * (UiSpot.branch; the one that is left ends where it is now), in the file too, as one change by a command
 * (NULL: none; it must stay valid). false: nothing changed, because texts cannot be read, or do not fit in
 * the RAM budget (reported). A message without an answer at its end waits for /retry. */
bool ui_app_go(UiApp *a, UiSpot to, const char *by);

/* Shows another version of the last answer that has several, with what followed that version: the one before
 * (-1), the next (1). Writes what is shown now to said; or why it is impossible, and returns false. */
bool ui_app_step_version(UiApp *a, int by, char *said, size_t cap);
/* The same: version nth. */
bool ui_app_go_version(UiApp *a, uint32_t nth, char *said, size_t cap);

#endif
