/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Waiting with a limit, by the monotonic clock. */
#include <time.h>

#include "src/base/platform.h"

#define SECOND 1000000000u

void qsf_os_cond_init(pthread_cond_t *c) {
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
}

void qsf_os_wait_for(pthread_cond_t *c, pthread_mutex_t *m, uint64_t ns) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const uint64_t part = (uint64_t)t.tv_nsec + ns % SECOND;
    t.tv_sec += (time_t)(ns / SECOND + part / SECOND);
    t.tv_nsec = (long)(part % SECOND);
    (void)pthread_cond_timedwait(c, m, &t);
}
