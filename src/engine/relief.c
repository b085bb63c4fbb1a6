/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is done when memory is short. */
#include "src/engine/relief.h"

#include <stdio.h>
#include <string.h>

#include "src/base/clock.h"

#define MIB 1048576u

static unsigned long long mib(uint64_t bytes) { return (unsigned long long)(bytes / MIB); }

static const char *what_happens(const QsfRuntime *r, bool gave) {
    const bool policy = qsf_forward_evicts(r->fwd), chat = r->settings.commands;
    if (policy)
        return gave ? "the cache shrinks by the eviction policy" : "what is left of the cache is protected";
    if (gave)
        return chat
                   ? "weights in the unused part of the context were given back; /kv policy sliding lets the cache "
                     "shrink too"
                   : "weights in the unused part of the context were given back; --eviction-policy sliding lets the "
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
