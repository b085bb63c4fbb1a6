/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Signals as bytes in a pipe. */
#include "ui/ui_signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "qsf_system.h"

static int ends[2] = { -1, -1 };

static void on_signal(int sig) {
    int saved = errno;
    unsigned char byte = (unsigned char)sig;
    ssize_t ignored = write(ends[1], &byte, 1);
    (void)ignored;
    errno = saved;
}

static void handle(int sig, void (*fn)(int)) {
    struct sigaction sa = { .sa_handler = fn, .sa_flags = SA_RESTART };
    sigemptyset(&sa.sa_mask);
    sigaction(sig, &sa, NULL);
}

bool ui_signals_open(bool screen) {
    if (ends[0] < 0 && !qsf_pipe(ends, true)) return false;
    handle(SIGINT, on_signal);
    handle(SIGTERM, on_signal);
    handle(SIGHUP, on_signal);
    handle(SIGCHLD, on_signal);
    handle(SIGPIPE, SIG_IGN);
    handle(SIGXFSZ, SIG_IGN); /* then a session at the size limit behaves as on a full disk */
    if (screen) {
        handle(SIGWINCH, on_signal);
        handle(SIGTSTP, on_signal);
        handle(SIGCONT, on_signal);
    }
    return true;
}

int ui_signals_fd(void) { return ends[0]; }

int ui_signals_next(void) {
    unsigned char byte;
    return read(ends[0], &byte, 1) == 1 ? byte : 0;
}
