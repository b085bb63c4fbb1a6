/* SPDX-License-Identifier: GPL-3.0-or-later */
/* No CPU sets there. */
int sched_yield(void);
