/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The CPUs that this process may use: how many cores of which kind, and how much of them. Sources on Linux:
 * sysfs (Documentation/ABI/testing/sysfs-devices-system-cpu, and event_source devices cpu_core, cpu_atom and
 * cpu_lowpower of hybrid Intel processors), sched_getaffinity(2), the CPU quota of cgroups (clock.h). On
 * macOS: hw.perflevel0 and the like, sysctl(3). Any thread. */
#ifndef QSF_BASE_CPUS_H
#define QSF_BASE_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QSF_CPUS_MAX  8192 /* CPUs with higher numbers are not used */
#define QSF_CPU_KINDS 4    /* slower kinds count as the last one */

/* A set of CPU numbers: bit n % 64 of bit[n / 64]. */
typedef struct QsfCpuSet {
    uint64_t bit[QSF_CPUS_MAX / 64];
} QsfCpuSet;

static inline bool qsf_cpu_in(const QsfCpuSet *s, unsigned n) {
    return n < QSF_CPUS_MAX && (s->bit[n / 64] >> n % 64 & 1) != 0;
}
static inline void qsf_cpu_add(QsfCpuSet *s, unsigned n) {
    if (n < QSF_CPUS_MAX) s->bit[n / 64] |= 1ull << n % 64;
}

/* Returns how many there are. */
int qsf_cpus_in_set(const QsfCpuSet *s);

/* Cores of about the same speed. */
typedef struct QsfCpuKind {
    int cores; /* those with at least one allowed CPU */
    int cpus;  /* allowed CPUs: more than cores if the cores run several threads at once (SMT) */
} QsfCpuKind;

typedef struct QsfCpus {
    QsfCpuKind kind[QSF_CPU_KINDS]; /* (n_kinds), the fastest first */
    int n_kinds;                    /* >= 1 */
    int cores, cpus;                /* of all kinds; >= 1 */
    double quota;                   /* CPUs that the tightest cgroup allows; 0 = no quota */
    int limit;                      /* threads that can run at once: cpus, or the quota rounded up; >= 1 */
    const char *source;             /* what told the kinds, such as "cpu_core" or "perflevel"; "" if
                                       nothing did, and all cores count as one kind */
} QsfCpus;

/* Reads the files below root ("" is the real root). allowed: the affinity mask; NULL: that of the calling
 * thread. Never fails: what is not known counts as one kind of cores without SMT. */
void qsf_cpus_read(QsfCpus *out, const char *root, const QsfCpuSet *allowed);
/* Describes them: "6 + 8 cores, 20 CPUs (cpu_core), quota of 1.50 CPUs". */
void qsf_cpus_text(const QsfCpus *c, char *dst, size_t cap);
/* Returns the number of CPUs that this process may use at once (affinity and cgroup quota), >= 1. */
int qsf_cpu_count(void);

/* A number of threads that may be the fastest one, and what it stands for. */
typedef struct QsfWidth {
    int threads;
    const char *what; /* "fastest cores", "all CPUs"; a literal */
} QsfWidth;
#define QSF_WIDTHS 7
/* Fills out with the numbers of threads worth measuring, ascending and different, none above c->limit, and
 * returns how many, >= 1. *decode and *prefill get the index of the one to begin with: one thread on each of
 * the fastest cores, and one on every core. */
int qsf_cpus_widths(const QsfCpus *c, QsfWidth out[QSF_WIDTHS], int *decode, int *prefill);

#endif
