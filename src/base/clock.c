/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Time, and what is the same everywhere about memory. */
#include "src/base/clock.h"

#include <stdatomic.h>
#include <time.h>

#include "src/base/platform.h"

uint64_t qsf_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static atomic_uint_fast64_t peak_before; /* the largest one before a reset */

uint64_t qsf_peak_rss_bytes(void) {
    const uint64_t before = atomic_load(&peak_before), now = qsf_recent_peak_rss_bytes();
    return now > before ? now : before;
}

bool qsf_peak_rss_reset(void) {
    const uint64_t peak = qsf_recent_peak_rss_bytes();
    uint_fast64_t before = atomic_load(&peak_before);
    while (before < peak && !atomic_compare_exchange_weak(&peak_before, &before, peak)) {
    }
    return qsf_os_reset_peak();
}
