/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A pipe. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "qsf_system.h"
#include "src/base/wake.h"

int qsf_wake_open(QsfWake *w, QsfErr *err) {
    if (qsf_pipe(w->fd, true)) return QSF_OK;
    int e = errno;
    w->fd[0] = w->fd[1] = -1;
    return qsf_err_set(err, QSF_E_RUNTIME, "cannot create a pipe for the event queue: %s", strerror(e));
}

void qsf_wake_close(QsfWake *w) {
    for (int i = 0; i < 2; i++) {
        if (w->fd[i] >= 0) close(w->fd[i]);
        w->fd[i] = -1;
    }
}

void qsf_wake_signal(QsfWake *w) {
    ssize_t n;
    do n = write(w->fd[1], "", 1);
    while (n < 0 && errno == EINTR);
}

void qsf_wake_clear(QsfWake *w) {
    char c[8];
    while (read(w->fd[0], c, sizeof c) > 0) {
    }
}
