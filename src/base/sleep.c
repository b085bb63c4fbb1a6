/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/base/sleep.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(atomic_uint) == 4, "a futex is a word of 32 bits");

void qsf_sleep_while(atomic_uint *word, unsigned seen) {
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

void qsf_wake_all(atomic_uint *word) {
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
