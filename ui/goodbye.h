/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a full-screen chat prints on the normal screen when it ends. */
#ifndef QSF_UI_GOODBYE_H
#define QSF_UI_GOODBYE_H

#include "ui/app.h"

/* Prints the last exchange, and how to resume, to standard output. */
void ui_goodbye_print(const UiApp *a);

#endif
