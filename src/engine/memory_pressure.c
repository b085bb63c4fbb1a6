/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The monitor of real memory. */
#include "src/engine/memory_pressure.h"

#include <stdio.h>
#include <stdlib.h>

#include "src/base/clock.h"

#define LOOK_NS 250000000u
#define WAIT_NS 1000000000u
#define STALL   10.0 /* percent of the time, above which twice the threshold is little */

void qsf_pressure_init(QsfPressure *p) {
    const char *root = getenv(QSF_PRESSURE_ROOT);
    *p = (QsfPressure){ .root = root != NULL ? root : "", .available = UINT64_MAX, .stall = -1 };
}

QsfPressureLevel qsf_pressure_look(QsfPressure *p, uint64_t threshold, uint64_t now_ns) {
    if (now_ns < p->next_ns) return QSF_PRESSURE_SAME;
    p->next_ns = now_ns + LOOK_NS;
    p->available = qsf_available_below(p->root);
    p->stall = qsf_memory_stall_below(p->root);
    p->problem[0] = '\0';
    if (p->available == UINT64_MAX) {
        snprintf(
            p->problem, sizeof p->problem,
            "%.60s/proc/meminfo: no number after MemAvailable, and no cgroup has a limit: memory is not watched",
            p->root);
        return QSF_PRESSURE_SAME;
    }
    if (p->available < threshold) return QSF_PRESSURE_LOW;
    if (p->available / 2 >= threshold) return QSF_PRESSURE_AMPLE;
    return p->stall >= STALL ? QSF_PRESSURE_LOW : QSF_PRESSURE_SAME;
}

int qsf_pressure_note(const QsfPressure *p, uint32_t threshold, char *dst, size_t cap) {
    dst[0] = '\0';
    if (threshold == 0) return 0;
    if (p->problem[0] != '\0') return snprintf(dst, cap, "%s", p->problem);
    if (p->available == UINT64_MAX) return 0;
    const int n = snprintf(dst, cap, "%llu MB available, threshold %u MB",
                           (unsigned long long)(p->available >> 20), (unsigned)threshold);
    return p->stall < 0
               ? n
               : n + snprintf(dst + n, cap - (size_t)n, ", %.1f %% of the time waited for", p->stall);
}

void qsf_pressure_wait(QsfPressure *p, uint64_t now_ns) { p->next_ns = now_ns + WAIT_NS; }
