/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SIGINT and SIGTERM ask the running computation to stop; a second one kills at once. A reader that went away and a file at its limit are
 * errors of the write. */
#include <signal.h>
#include <string.h>

#include "src/cli/signals.h"

atomic_int qsf_signal_cancel;

static void on_signal(int sig) {
    if (atomic_exchange(&qsf_signal_cancel, sig)) {
        signal(sig, SIG_DFL);
        raise(sig);
    }
}

void qsf_signals_init(void) {
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sigemptyset(&sa.sa_mask);
    sa.sa_handler = on_signal; /* without SA_RESTART: a read of stdin ends too */
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    sa.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &sa, NULL);
    sigaction(SIGXFSZ, &sa, NULL); /* a file at its limit is an error of that write */
}
