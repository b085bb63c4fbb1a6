/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sleeps until a number changes: futex(2), which loses no wake-up and needs no lock around the number. (A
 * condition variable can lose one, glibc bug 25847, at the rate at which the jobs of a token come.) */
#ifndef QSF_BASE_SLEEP_H
#define QSF_BASE_SLEEP_H

#include <stdatomic.h>

/* Sleeps while *word equals seen, until woken. May return early: the caller must check again. Any thread. */
void qsf_sleep_while(atomic_uint *word, unsigned seen);

/* Wakes all threads that sleep on the word, which must have been changed before. Any thread. */
void qsf_wake_all(atomic_uint *word);

#endif
