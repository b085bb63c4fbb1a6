/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory, as Mach counts it. What the system holds a process to, and what its tools show, is the physical
 * footprint: private pages, also where they have been compressed, but not those of files. */
#include <mach/mach.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/platform.h"

static bool read_task(task_vm_info_data_t *info) {
    mach_msg_type_number_t n = TASK_VM_INFO_COUNT;
    return task_info(mach_task_self(), TASK_VM_INFO, (task_info_t)info, &n) == KERN_SUCCESS;
}

uint64_t qsf_rss_bytes(void) {
    task_vm_info_data_t info = { 0 };
    return read_task(&info) ? info.phys_footprint : 0;
}

uint64_t qsf_recent_peak_rss_bytes(void) {
    task_vm_info_data_t info = { 0 };
    return read_task(&info) && info.ledger_phys_footprint_peak > 0 ? (uint64_t)info.ledger_phys_footprint_peak
                                                                   : 0;
}

/* The system keeps one for the life of the process. */
bool qsf_os_reset_peak(void) { return false; }

/* Each call of mach_host_self() is another right to the port, which nothing returns: one is enough. */
static host_t host;
static void find_host(void) { host = mach_host_self(); }

/* Free and inactive pages, as psutil counts (giampaolo/psutil): inactive ones are those of files, or can be
 * compressed. */
uint64_t qsf_available_below(const char *root) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    vm_statistics64_data_t vm = { 0 };
    mach_msg_type_number_t n = HOST_VM_INFO64_COUNT;
    if (*root != '\0') return UINT64_MAX;
    (void)pthread_once(&once, find_host);
    if (host_statistics64(host, HOST_VM_INFO64, (host_info64_t)&vm, &n) != KERN_SUCCESS) return UINT64_MAX;
    return ((uint64_t)vm.free_count + vm.inactive_count) * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t qsf_limit_below(const char *root) {
    uint64_t bytes = 0;
    size_t n = sizeof bytes;
    if (*root != '\0' || sysctlbyname("hw.memsize", &bytes, &n, NULL, 0) != 0 || n != sizeof bytes)
        return UINT64_MAX;
    return bytes;
}

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
