/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sleeping on a word: futex(2), which loses no wake-up and needs no lock around the word. (A condition
 * variable can lose one, glibc bug 25847, at the rate at which the jobs of a token come.) */
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/platform.h"

_Static_assert(sizeof(atomic_uint) == 4, "a futex is a word of 32 bits");

void qsf_os_sleep(atomic_uint *word, unsigned seen) {
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

void qsf_os_wake(atomic_uint *word, bool all) {
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, all ? INT_MAX : 1, NULL, NULL, 0);
}
