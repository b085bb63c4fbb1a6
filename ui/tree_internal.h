/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by ui/tree.c, which has the messages, and ui/tree_steps.c, which has the changes. */
#ifndef QSF_UI_TREE_INTERNAL_H
#define QSF_UI_TREE_INTERNAL_H

#include "ui/tree.h"

/* Are these the same message with the same context? Numbers of forgets may differ. */
bool ui_tree_same(const UiTree *t, UiSpot x, UiSpot y);
/* The last record of a change was taken, and it was not a setting. */
void ui_steps_commit(UiTree *t, const QSFLogRecord *r, UiStepKind kind);
/* More of the last answer was taken. */
void ui_steps_go_on(UiTree *t);
/* The conversation moved back to where it is now, from `from`. */
void ui_steps_back(UiTree *t, UiSpot from);
/* Is this where the last change began? */
bool ui_steps_is_before_last(const UiTree *t, UiSpot spot);
/* A message without an answer is replaced by the next one: it is not a separate change. */
void ui_steps_withdrawn(UiTree *t, uint32_t id);
/* Is r the record that takes back the last change? */
bool ui_steps_undoes(const UiTree *t, const QSFLogRecord *r);
/* A SET or SYSTEM record that can be undone. */
void ui_steps_setting(UiTree *t, const QSFLogRecord *r, uint32_t was_at);
/* No change can be undone; settings: except for those before the first message. */
void ui_steps_clear(UiTree *t, bool settings);

#endif
