/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SIGINT, SIGTERM and SIGHUP request cancellation of the running computation; a second one kills immediately.
 * SIGPIPE and SIGXFSZ are ignored. */
#ifndef QSF_CLI_SIGNALS_H
#define QSF_CLI_SIGNALS_H

#include <stdatomic.h>
#include <stdbool.h>

extern atomic_int qsf_signal_cancel; /* the signal's number, 0 = none */
/* Installs the handlers, and makes this thread watch the flag (base/interrupt.h). Call it
 * once, before starting threads. */
void qsf_signals_init(void);
/* While on, the first one ends the process too: for work over long texts that has nothing to undo, where a
 * library (a regular expression, JSON) may not return for a second. Any thread. */
void qsf_signals_end_at_once(bool on);

#endif
