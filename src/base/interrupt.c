/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/base/interrupt.h"

#include <stddef.h>

#include "src/base/clock.h"
#include "src/base/platform.h"
#include "src/base/sanitizer.h"

#define MIB ((uint64_t)1 << 20)
/* The heap grows by at most this many bytes per nanosecond, as fast as memory takes them; between two
 * measurements at least 100 us pass. */
#define GROWTH    16u
#define LEAST_GAP 100000u

static _Thread_local const atomic_int *watched;
static _Thread_local QsfMemoryLimit limit;

const atomic_int *qsf_interrupt_watch(const atomic_int *flag) {
    const atomic_int *before = watched;
    watched = flag;
    return before;
}

/* The next measurement comes when the limit could be reached. */
static void measure(uint64_t now) {
    const uint64_t rss = qsf_rss_bytes(), left = limit.most > rss ? (limit.most - rss) / GROWTH : 0;
    limit.passed = rss > limit.most;
    limit.due = now + (left > LEAST_GAP ? left : LEAST_GAP);
}

static bool passes(void) {
    if (limit.budget == 0 || limit.passed) return limit.passed;
    const uint64_t now = qsf_now_ns();
    if (now >= limit.due) measure(now);
    return limit.passed;
}

QsfMemoryLimit qsf_memory_limit_begin(uint64_t budget) {
    const QsfMemoryLimit before = limit;
    const uint64_t most = (budget > MIB ? budget - MIB : 0), least = qsf_rss_bytes() + MIB;
    limit = (QsfMemoryLimit){ .budget = budget, .most = most > least ? most : least };
    if (QSF_ADDRESS_SANITIZER || QSF_THREAD_SANITIZER || QSF_MEMORY_SANITIZER) limit.budget = 0;
    return before;
}

int qsf_memory_limit_end(const QsfMemoryLimit *before, int rc, const char *what, const char *option,
                         QsfErr *err) {
    const QsfMemoryLimit was = limit;
    limit = *before;
    if (!was.passed) return rc;
    qsf_os_trim_heap();
    if (rc == QSF_OK) return rc;
    qsf_err_clear(err);
    return qsf_err_set(err, QSF_E_BUDGET,
                       "%s: it takes more memory than the RAM budget of %llu MB leaves: raise %s", what,
                       (unsigned long long)(was.budget / MIB), option);
}

bool qsf_interrupted(void) {
    return (watched != NULL && atomic_load_explicit(watched, memory_order_relaxed) != 0) || passes();
}

int qsf_interrupt_check(QsfErr *err) {
    if (!qsf_interrupted()) return QSF_OK;
    return limit.passed ? qsf_err_set(err, QSF_E_BUDGET, "more memory than the RAM budget leaves")
                        : qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted");
}
