/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Time, memory use and CPU quota, as the kernel reports them. Any thread. */
#ifndef QSF_BASE_CLOCK_H
#define QSF_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds of a clock that nothing sets (CLOCK_MONOTONIC). */
uint64_t qsf_now_ns(void);
/* Returns the RAM of this process: VmRSS of /proc/self/status; on macOS the physical footprint of the task,
 * which is what the system limits. 0 where unknown. */
uint64_t qsf_rss_bytes(void);
/* Returns the largest value of it so far: VmHWM, or what that was before it was reset; falls back to
 * getrusage. */
uint64_t qsf_peak_rss_bytes(void);
/* Returns the largest one since the last reset: VmHWM. */
uint64_t qsf_recent_peak_rss_bytes(void);
/* Resets VmHWM to the current resident set (writes 5 to /proc/self/clear_refs, proc(5)). Returns false if
 * that is not permitted, or not possible on this system. */
bool qsf_peak_rss_reset(void);
/* Returns the available memory in bytes: the minimum of MemAvailable and the headroom of the tightest memory
 * cgroup (v1 or v2) that contains this process; on macOS what is free or inactive. 0 where unknown. */
uint64_t qsf_available_bytes(void);
/* The same from files below root. Nothing is guessed: UINT64_MAX if no file there has a usable
 * number. "" is the real root, and the only one on other systems than Linux. */
uint64_t qsf_available_below(const char *root);
/* Returns the memory in bytes that this process could have if it were alone: the minimum of MemTotal and the
 * limits of the memory cgroups that contain it; without swap. UINT64_MAX if no file below root has a usable
 * number. */
uint64_t qsf_limit_below(const char *root);
/* Percentage of the last ten seconds in which all tasks waited for memory (/proc/pressure/memory
 * below root); -1 = not known. */
double qsf_memory_stall_below(const char *root);
/* Returns how many CPUs the tightest CPU quota among the cgroups (v1 or v2) that contain this process allows,
 * such as 1.5, from files below root; 0 without a quota. */
double qsf_cpu_quota_below(const char *root);

#endif
