/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cancellation of long computations over text (tokenizing, rendering, reading a vocabulary), which have no
 * other connection to their caller: each thread watches a flag of its own. */
#ifndef QSF_BASE_INTERRUPT_H
#define QSF_BASE_INTERRUPT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "src/base/err.h"

/* Makes this thread watch a flag, NULL = none; computations stop when it is not zero. The flag must outlive
 * the computations. Returns the flag watched before. */
const atomic_int *qsf_interrupt_watch(const atomic_int *flag);
/* Whether this thread's computation is to stop. Costs a load: call it every few thousand steps
 * of a tight loop. */
bool qsf_interrupted(void);
/* QSF_E_INTERRUPTED if it is to stop. */
int qsf_interrupt_check(QsfErr *err);

#endif
