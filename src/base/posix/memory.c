/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory where nothing but POSIX is known: the largest resident set so far, and nothing of others. */
#include <sys/resource.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/platform.h"

uint64_t qsf_recent_peak_rss_bytes(void) {
    struct rusage ru;
    return getrusage(RUSAGE_SELF, &ru) == 0 ? (uint64_t)ru.ru_maxrss * 1024 : 0;
}

uint64_t qsf_rss_bytes(void) { return 0; }
bool qsf_os_reset_peak(void) { return false; }

#ifdef _SC_AVPHYS_PAGES /* not in POSIX, but in most systems */
#define AVAILABLE _SC_AVPHYS_PAGES
#define ALL       _SC_PHYS_PAGES
static uint64_t bytes_of(int what) {
    const long pages = sysconf(what), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
}
#else
#define AVAILABLE 0
#define ALL       0
static uint64_t bytes_of(int what) {
    (void)what;
    return UINT64_MAX;
}
#endif

uint64_t qsf_available_below(const char *root) { return *root == '\0' ? bytes_of(AVAILABLE) : UINT64_MAX; }
uint64_t qsf_limit_below(const char *root) { return *root == '\0' ? bytes_of(ALL) : UINT64_MAX; }

uint64_t qsf_available_bytes(void) {
    const uint64_t v = qsf_available_below("");
    return v != UINT64_MAX ? v : 0;
}

double qsf_memory_stall_below(const char *root) {
    (void)root;
    return -1;
}

double qsf_cpu_quota_below(const char *root) {
    (void)root;
    return 0;
}
