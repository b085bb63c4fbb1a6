/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Walking through the last answer token by token: at each place there is a list of the likeliest tokens, and
 * when another one is chosen, a new version of the answer continues after it. One thread.
 *
 * The engine knows the tokens of an answer that it wrote last; those of others (a resumed session, after
 * /compact) it evaluates again, in its own request. */
#ifndef QSF_UI_WALK_H
#define QSF_UI_WALK_H

#include "ui/app.h"

#define UI_WALK_ROWS (QSF_CANDIDATES + 1u) /* of the list: also the token of the answer */

/* A request for an answer was submitted: it is `it`, or NULL. Walking ends. */
void ui_walk_asked(UiApp *a, const UiItem *it);
/* The answer whose tokens may be shown: the last message, or NULL. */
const UiItem *ui_walk_item(const UiApp *a);
/* Does the engine know its tokens? */
bool ui_walk_known(const UiApp *a, QSFTokens *t);
/* The answer `it`, the last message, has ended: its tokens stay with it, for the session and for later. done:
 * nothing failed. */
void ui_walk_keep(UiApp *a, UiItem *it, bool done);
/* Has the engine evaluate them; open: walking begins when it has. Returns NULL, or why that is impossible. */
const char *ui_walk_evaluate(UiApp *a, bool open);
/* That request is over. */
void ui_walk_known_now(UiApp *a, const QSFEvent *e);

/* Goes to the token before (by -1) or to the next one (by 1); the first call begins at the last token.
 * Returns NULL, or why not. */
const char *ui_walk_step(UiApp *a, int by);
void ui_walk_close(UiApp *a);
/* The number of tokens in the list; the one at row i, likeliest first. */
unsigned ui_walk_rows(const UiApp *a);
QSFCandidate ui_walk_row(const UiApp *a, unsigned i);
/* Chooses the row before or after. */
void ui_walk_move(UiApp *a, int by);
/* A new version of the answer continues after the token at row i. Returns NULL, or why not. */
const char *ui_walk_take(UiApp *a, unsigned i);
/* The text of a token, in quotes; what no terminal should get, and parts of characters, as \n and \xE2; the
 * name of a control token in brackets, and there the id of one without its own name. */
void ui_walk_text(const UiApp *a, int32_t id, char *dst, size_t cap);

#endif
