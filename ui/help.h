/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Help texts, made from the tables of commands, settings and keys. */
#ifndef QSF_UI_HELP_H
#define QSF_UI_HELP_H

#include "qsf_engine.h"
#include "ui/buf.h"

/* Keys (if there are any) and commands, in two columns of width cells together; 0 = lines of any length. */
void ui_help_all(UiBuf *b, bool keys, int width);
/* Help for one command or setting; false if the name is unknown. */
bool ui_help_topic(const char *name, UiBuf *b, int width);

#endif
