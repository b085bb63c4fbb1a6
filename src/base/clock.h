/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Time and what the kernel says about this process and machine. Any thread. */
#ifndef QSF_BASE_CLOCK_H
#define QSF_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

uint64_t qsf_now_ns(void);         /* CLOCK_MONOTONIC, nanoseconds */
uint64_t qsf_rss_bytes(void);      /* VmRSS of /proc/self/status; 0 where unknown */
uint64_t qsf_peak_rss_bytes(void); /* VmHWM; falls back to getrusage */
/* Makes the peak what is resident now (5 to /proc/self/clear_refs, proc(5)); false where that is not allowed. */
bool qsf_peak_rss_reset(void);
/* min(MemAvailable, what the tightest memory cgroup (v1 or v2) above us still allows); bytes. */
uint64_t qsf_available_bytes(void);
int qsf_cpu_count(void);           /* CPUs this process may run on (affinity and cgroup quota), >= 1 */

#endif
