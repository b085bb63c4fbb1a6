/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stops long computations over text (tokenizing, rendering, reading a vocabulary), which have no other
 * connection to their caller: each thread watches its own flag, and may have a memory limit. */
#ifndef QSF_BASE_INTERRUPT_H
#define QSF_BASE_INTERRUPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/err.h"

/* Makes this thread watch a flag, NULL = none; computations stop when it is not zero. The flag must outlive
 * the computations. Returns the flag watched before. */
const atomic_int *qsf_interrupt_watch(const atomic_int *flag);

/* A limit for what the libc heap takes while this thread reads input of unknown size: computations stop when
 * the resident set of the process comes close to a budget. */
typedef struct QsfMemoryLimit {
    uint64_t budget; /* bytes, 0 = no limit */
    uint64_t most;   /* bytes of the resident set */
    uint64_t due;    /* when to measure it next, in ns */
    bool passed;
} QsfMemoryLimit;

/* Begins a limit for this thread: 1 MiB less than the budget, but always 1 MiB more than now. 0 = none.
 * Without effect in builds with a sanitizer, and where the resident set is not known. Returns the limit
 * before, which qsf_memory_limit_end puts back. */
QsfMemoryLimit qsf_memory_limit_begin(uint64_t budget);
/* Ends it and frees what the heap does not use, if it was passed: then rc is an error whose message is
 * replaced, and QSF_E_BUDGET is returned: "NAME: it takes more memory than ...". what: a file or an option;
 * option: how the budget is raised. Otherwise returns rc. */
int qsf_memory_limit_end(const QsfMemoryLimit *before, int rc, const char *what, const char *option,
                         QsfErr *err);

/* Whether this thread's computation is to stop. Costs two loads, and with a limit a few microseconds now and
 * then: call it every few thousand steps of a tight loop. */
bool qsf_interrupted(void);
/* QSF_E_INTERRUPTED if it is to stop, QSF_E_BUDGET if the limit was passed. */
int qsf_interrupt_check(QsfErr *err);

#endif
