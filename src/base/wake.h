/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Waking a thread that waits for descriptors, as poll(2) does. */
#ifndef QSF_BASE_WAKE_H
#define QSF_BASE_WAKE_H

#include "src/base/err.h"

typedef struct QsfWake {
    int fd[2]; /* [0] is readable while a signal is waiting; -1 on systems without descriptors */
} QsfWake;

/* QSF_E_RUNTIME. After an error, and zero-initialized with -1, qsf_wake_close does nothing. */
int qsf_wake_open(QsfWake *w, QsfErr *err);
/* Closes the descriptors. */
void qsf_wake_close(QsfWake *w);
/* Any thread. Never waits, if the last signal was cleared. */
void qsf_wake_signal(QsfWake *w);
/* Takes all signals. The thread that waits. */
void qsf_wake_clear(QsfWake *w);

#endif
