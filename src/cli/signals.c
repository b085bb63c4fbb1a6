/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Implements signals.h. A closed pipe and a file at its size limit become errors of the write. */
#include <signal.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/cli/signals.h"

atomic_int qsf_signal_cancel;

static atomic_bool at_once;

static void end_by(int sig) {
    signal(sig, SIG_DFL);
    raise(sig);
}

static void on_signal(int sig) {
    if (atomic_exchange(&qsf_signal_cancel, sig) || atomic_load(&at_once)) end_by(sig);
}

void qsf_signals_end_at_once(bool on) {
    atomic_store(&at_once, on);
    const int sig = on ? atomic_load(&qsf_signal_cancel) : 0; /* it came before */
    if (sig) end_by(sig);
}

void qsf_signals_init(void) {
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sigemptyset(&sa.sa_mask);
    sa.sa_handler = on_signal; /* no SA_RESTART, so that a read of stdin is interrupted */
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    struct sigaction hup;
    if (sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &sa, NULL); /* nohup */
    (void)qsf_interrupt_watch(&qsf_signal_cancel);
    sa.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &sa, NULL);
    sigaction(SIGXFSZ, &sa, NULL); /* the write fails with EFBIG instead */
}
