/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/base/interrupt.h"

#include <stddef.h>

static _Thread_local const atomic_int *watched;

const atomic_int *qsf_interrupt_watch(const atomic_int *flag) {
    const atomic_int *before = watched;
    watched = flag;
    return before;
}

bool qsf_interrupted(void) {
    return watched != NULL && atomic_load_explicit(watched, memory_order_relaxed) != 0;
}

int qsf_interrupt_check(QsfErr *err) {
    return qsf_interrupted() ? qsf_err_set(err, QSF_E_INTERRUPTED, "interrupted") : QSF_OK;
}
