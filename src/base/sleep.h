/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sleeping until a number changes: futex(2), which loses no waking and needs no lock around the number. (A condition
 * variable can lose one, glibc bug 25847, when threads come and go as fast as the jobs of a token.) */
#ifndef QSF_BASE_SLEEP_H
#define QSF_BASE_SLEEP_H

#include <stdatomic.h>

/* Sleeps while *word is seen, until it is woken; may return earlier, so the caller looks again. Any thread. */
void qsf_sleep_while(atomic_uint *word, unsigned seen);

/* Wakes all that sleep on the word. It has been changed before. Any thread. */
void qsf_wake_all(atomic_uint *word);

#endif
