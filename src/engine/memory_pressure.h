/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Watches the real memory of the machine and of the cgroup, and gives memory back while it is short, by the
 * setting memory-threshold-mb. A few small files are read, at most four times a second. One thread. */
#ifndef QSF_ENGINE_MEMORY_PRESSURE_H
#define QSF_ENGINE_MEMORY_PRESSURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QSF_PRESSURE_ROOT \
    "QSF_MEMORY_ROOT" /* environment: the directory that has /proc and /sys, for tests */

typedef enum QsfPressureLevel {
    QSF_PRESSURE_SAME, /* not looked at again yet, not known, or between low and ample */
    QSF_PRESSURE_LOW,  /* less than the threshold; or less than twice that, and tasks wait for memory */
    QSF_PRESSURE_AMPLE /* twice the threshold or more */
} QsfPressureLevel;

typedef struct QsfPressure {
    const char *root;   /* "" = the real one */
    uint64_t next_ns;   /* when to look again; 0 = now */
    uint64_t available; /* bytes, at the last look; UINT64_MAX = not known */
    double stall;       /* as in qsf_memory_stall_below */
    char problem[160];  /* why the memory is not known, or "" */
} QsfPressure;

/* Uses the root of the environment. */
void qsf_pressure_init(QsfPressure *p);
/* Compares the available memory with a threshold of bytes > 0, unless it was looked at
 * recently. now_ns: monotonic. */
QsfPressureLevel qsf_pressure_look(QsfPressure *p, uint64_t threshold, uint64_t now_ns);
/* Describes the last look: what is available, or why it is not known. Returns the length; 0
 * without a threshold (MiB). */
int qsf_pressure_note(const QsfPressure *p, uint32_t threshold, char *dst, size_t cap);
/* Memory was given back: looks again only after a second, when that shows. */
void qsf_pressure_wait(QsfPressure *p, uint64_t now_ns);

struct QsfRuntime;
/* Between two tokens, with the ledger thawed: looks at the memory. While it is short, gives back weights in
 * the unused part of the context, and with an eviction policy a quarter of the positions at a time; when
 * there is plenty again, both may grow. Returns true with a sentence in note the first time that something is
 * given back, and the first time that nothing can be. */
bool qsf_runtime_relieve(struct QsfRuntime *r, char *note, size_t cap);

#endif
