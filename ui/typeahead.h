/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is typed on the terminal while nothing reads it: by itself, a terminal drops that at ^C. One
 * thread. */
#ifndef QSF_UI_TYPEAHEAD_H
#define QSF_UI_TYPEAHEAD_H

#include "ui/buf.h"

/* From now on ^C on the terminal of standard input drops nothing. Without effect if it is not a terminal. */
void ui_typeahead_keep(void);
/* The terminal is again as it was, for another program or at the end. */
void ui_typeahead_restore(void);
/* Appends what was typed so far as clean text with newlines, the last line as far as it was typed. Does not
 * wait. Not while readline has the terminal. */
void ui_typeahead_take(UiBuf *out);

#endif
