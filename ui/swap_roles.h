/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Exchanged roles: the model writes the next message of the user. It gets the conversation with the roles the
 * other way round, after a message that says so: the user is first and roles alternate, as templates want.
 * One thread. */
#ifndef QSF_UI_SWAP_ROLES_H
#define QSF_UI_SWAP_ROLES_H

#include "ui/app.h"

/* Asks the model. The last message, if there is one, is an answer. false: impossible (reported). */
bool ui_swap_roles(UiApp *a);
/* Events of that request: more text, and its end. On the full screen the message is put into the input; in
 * line mode, and for a line of /source, it is sent. */
void ui_swap_roles_text(UiApp *a, const char *text, size_t len);
void ui_swap_roles_end(UiApp *a, const QSFEvent *e);

#endif
