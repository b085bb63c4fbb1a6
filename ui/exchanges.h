/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The beginning of a conversation leaves the context: it is forgotten, or a summary that the model writes
 * replaces it. The messages stay on the screen, the session file records what left, and the system prompt
 * always stays. One thread. */
#ifndef QSF_UI_EXCHANGES_H
#define QSF_UI_EXCHANGES_H

#include "ui/app.h"

/* Number of exchanges in the context. */
uint32_t ui_exchanges(const UiApp *a);
/* "the oldest exchange", "the oldest 3 exchanges" */
void ui_exchanges_oldest(uint32_t n, char *dst, size_t cap);
/* Tokens of the conversation without its first `exchanges`; -1 = not known. */
int64_t ui_exchanges_after(const UiApp *a, uint32_t exchanges);
/* Tokens of the system prompt, about. */
int64_t ui_exchanges_system(const UiApp *a);

/* Removes the first exchanges from the context and reports it. Not while the engine works. */
void ui_forget(UiApp *a, uint32_t exchanges);

/* How many of the first exchanges ui_compact should replace: half of them, not the last one, and as few as
 * the context needs to have space for the question and its answer; 0 = none. */
uint32_t ui_compact_choose(const UiApp *a);
/* Maximum tokens of a summary in this context. */
uint32_t ui_compact_tokens(const UiApp *a);
/* Asks the model for a summary of the first exchanges, which then replaces them; go_on: the last answer
 * continues after that. On the full screen the summary is shown first: a->compact.ready is set, and one of
 * the three functions below is called. false: impossible (reported). */
bool ui_compact(UiApp *a, uint32_t exchanges, bool go_on);
/* Events of that request: more text, and its end; error NULL = there was none, and stop says why it ended. */
void ui_compact_text(UiApp *a, const char *text, size_t len);
void ui_compact_end(UiApp *a, QSFStop stop, const char *error);

/* A summary is ready: _take replaces the exchanges by it, _drop discards it, _edit puts /compact TEXT into
 * the input. */
void ui_compact_take(UiApp *a);
void ui_compact_drop(UiApp *a);
void ui_compact_edit(UiApp *a);
/* Replaces the exchanges of the summary that was edited, or the oldest half, by text. false: there are
 * fewer than two. */
bool ui_compact_with(UiApp *a, const char *text);

#endif
