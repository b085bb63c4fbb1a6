/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Signals as bytes in a pipe, so that they are taken between two steps and never in the middle of one. */
#ifndef QSF_UI_SIGNALS_H
#define QSF_UI_SIGNALS_H

#include <stdbool.h>

/* Catches INT, TERM, HUP, WINCH, TSTP (suspend, only with screen), CONT and ignores PIPE and XFSZ. false
 * without descriptors. */
bool ui_signals_open(bool screen);
/* Readable when a signal came. */
int ui_signals_fd(void);
/* The oldest signal that came, 0 when none did. */
int ui_signals_next(void);
void ui_signals_close(void);

#endif
