/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Waiting with a limit: here condition variables know the time of day only, or how long to wait. */
#include <time.h>

#include "src/base/platform.h"

#define SECOND 1000000000u

void qsf_os_cond_init(pthread_cond_t *c) { pthread_cond_init(c, NULL); }

void qsf_os_wait_for(pthread_cond_t *c, pthread_mutex_t *m, uint64_t ns) {
    const struct timespec t = { .tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND) };
    (void)pthread_cond_timedwait_relative_np(c, m, &t);
}
