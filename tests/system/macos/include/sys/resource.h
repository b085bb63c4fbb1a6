/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_SYS_RESOURCE_H
#define STUB_SYS_RESOURCE_H
#include "../qsf_darwin.h"
#define RUSAGE_SELF 0
struct rusage {
    struct timeval ru_utime, ru_stime;
    long ru_maxrss; /* bytes */
    long ru_minflt, ru_majflt;
};
int getrusage(int whose, struct rusage *out);
typedef void *rusage_info_t;
#define RUSAGE_INFO_V0 0
struct rusage_info_v0 {
    uint8_t ri_uuid[16];
    uint64_t ri_user_time;
    uint64_t ri_system_time;
    uint64_t ri_pkg_idle_wkups;
    uint64_t ri_interrupt_wkups;
    uint64_t ri_pageins;
    uint64_t ri_wired_size;
    uint64_t ri_resident_size;
    uint64_t ri_phys_footprint;
    uint64_t ri_proc_start_abstime;
    uint64_t ri_proc_exit_abstime;
};
#endif
