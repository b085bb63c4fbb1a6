/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Watches the memory of the machine, and gives memory back when it is short. */
#include "src/engine/memory_pressure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/engine/runtime.h"

/* ---- the monitor ---- */

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
        snprintf(p->problem, sizeof p->problem,
                 "%.60s/proc/meminfo: no number after MemAvailable, and no cgroup has a limit: memory is not "
                 "watched",
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

/* ---- giving memory back ---- */

#define MIB 1048576u

static unsigned long long mib(uint64_t bytes) { return (unsigned long long)(bytes / MIB); }

static const char *what_happens(const QsfRuntime *r, bool gave) {
    const bool policy = qsf_forward_evicts(r->fwd), chat = r->settings.commands;
    if (policy)
        return gave ? "the cache shrinks by the eviction policy" : "what is left of the cache is protected";
    if (gave)
        return chat ? "weights in the unused part of the context were given back; /kv policy sliding lets "
                      "the cache "
                      "shrink too"
                    : "weights in the unused part of the context were given back; --eviction-policy sliding "
                      "lets the "
                      "cache shrink too";
    return chat ? "nothing can be given back without an eviction policy (/kv policy sliding)"
                : "nothing can be given back without --eviction-policy sliding";
}

/* Only the first time of each kind: later ones are in the statistics. */
static bool report(QsfRuntime *r, bool gave, char *note, size_t cap) {
    bool *reported = gave ? &r->relief_reported : &r->no_relief_reported;
    if (*reported) return false;
    *reported = true;
    snprintf(note, cap, "memory is low: %llu MB are available, less than memory-threshold-mb %u: %s",
             mib(r->pressure.available), (unsigned)r->settings.memory_threshold, what_happens(r, gave));
    return true;
}

bool qsf_runtime_relieve(QsfRuntime *r, char *note, size_t cap) {
    const uint64_t threshold = (uint64_t)r->settings.memory_threshold * MIB;
    if (threshold == 0) {
        if (r->pressed) (void)qsf_forward_relieve(r->fwd, false);
        r->pressed = false;
        return false;
    }
    const uint64_t now = qsf_now_ns();
    const QsfPressureLevel level = qsf_pressure_look(&r->pressure, threshold, now);
    if (level == QSF_PRESSURE_AMPLE && r->pressed) {
        (void)qsf_forward_relieve(r->fwd, false);
        r->pressed = false;
    }
    if (level != QSF_PRESSURE_LOW) return false;
    const bool gave = qsf_forward_relieve(r->fwd, true);
    r->pressed = true;
    if (gave) qsf_pressure_wait(&r->pressure, now);
    return (gave || !r->relief_reported) && report(r, gave, note, cap);
}
