/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tree of a session's messages as lines of text, for /tree. Pure but for reading texts; one thread. */
#ifndef QSF_UI_TREEVIEW_H
#define QSF_UI_TREEVIEW_H

#include "ui/buf.h"
#include "ui/tree.h"

/* Appends a line of at most `columns` cells for each message: a mark (">" the last message, "*" the others of
 * the open branch), its number, who, and the beginning of its text. Where several messages follow one, each
 * is indented with what follows it, and long runs without branches are shortened. Texts are read from log. */
void ui_treeview(const UiTree *t, const QSFChatLog *log, int columns, bool ascii, UiBuf *out);

#endif
