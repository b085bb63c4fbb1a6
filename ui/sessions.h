/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The list of sessions as text. One thread. */
#ifndef QSF_UI_SESSIONS_H
#define QSF_UI_SESSIONS_H

#include "qsf_chatlog.h"
#include "qsf_search.h"
#include "ui/buf.h"

/* Lists the sessions, newest first, in lines of at most width cells (40 to 200): name, last use, number of
 * messages, model and title; with search (may be NULL) those in which it finds something, otherwise the
 * newest ones. `current` is marked. Below 68 cells each takes two lines. Text from the files is cleaned; a
 * session that another program has open, or that is damaged or unreadable, is marked. ascii: the terminal
 * cannot show UTF-8. Adds nothing if there is no session. */
void ui_sessions_list(UiBuf *b, const char *current, QSFSearch *search, int width, bool ascii);

/* The title of a session as the list shows it, "[in use] " and the like included; "" if there are
 * none or the file is long. What was read is remembered until the file changes. */
void ui_sessions_title(const QSFLogInfo *info, const char *current, char *dst, size_t cap);

#endif
