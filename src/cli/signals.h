/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SIGINT and SIGTERM ask the running computation to stop; a second one kills at once. SIGPIPE is ignored. */
#ifndef QSF_CLI_SIGNALS_H
#define QSF_CLI_SIGNALS_H

#include <stdatomic.h>

extern atomic_int qsf_signal_cancel; /* the signal's number, 0 = none */
void qsf_signals_init(void);

#endif
