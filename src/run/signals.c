/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SIGINT and SIGTERM ask the running computation to stop; a second one kills at once. */
#include <signal.h>
#include <string.h>

#include "src/run/run.h"

atomic_int run_cancel;

static void on_signal(int sig) {
    if (atomic_exchange(&run_cancel, sig)) {
        signal(sig, SIG_DFL);
        raise(sig);
    }
}

void run_signals_init(void) {
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sigemptyset(&sa.sa_mask);
    sa.sa_handler = on_signal; /* without SA_RESTART: a read of stdin ends too */
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    sa.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &sa, NULL);
}
