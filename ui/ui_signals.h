/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Signals as bytes in a pipe, so that they are handled between two steps and never in the middle of one. */
#ifndef QSF_UI_SIGNALS_H
#define QSF_UI_SIGNALS_H

#include <stdbool.h>

/* Catches INT, TERM, HUP, CHLD, WINCH, TSTP (suspend, only with screen), CONT and ignores PIPE and XFSZ.
 * false without descriptors. */
bool ui_signals_open(bool screen);
/* Readable after a signal. */
int ui_signals_fd(void);
/* The oldest pending signal, 0 if there is none. */
int ui_signals_next(void);

#endif
