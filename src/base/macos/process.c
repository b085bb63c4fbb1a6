/* SPDX-License-Identifier: GPL-3.0-or-later */
/* This process and its parent: dyld(3), libproc.h; random bytes: arc4random(3). */
#include <libproc.h>
#include <mach-o/dyld.h>
#include <malloc/malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qsf_system.h"
#include "src/base/platform.h"

/* As it was executed, perhaps by way of a symbolic link: beside the program are others of it. */
bool qsf_program_path(char *out, size_t cap) {
    uint32_t bytes = cap < UINT32_MAX ? (uint32_t)cap : UINT32_MAX;
    if (_NSGetExecutablePath(out, &bytes) != 0) return false;
    char *real = realpath(out, NULL);
    const bool fits = real != NULL && strlen(real) < cap;
    if (fits) strcpy(out, real);
    free(real);
    return fits;
}

bool qsf_program_again(char *out, size_t cap) { return qsf_program_path(out, cap) && access(out, X_OK) == 0; }

uint64_t qsf_parent_bytes(bool *same) {
    char own[PROC_PIDPATHINFO_MAXSIZE], parent[PROC_PIDPATHINFO_MAXSIZE];
    struct rusage_info_v0 use;
    *same = proc_pidpath(getpid(), own, sizeof own) > 0 &&
            proc_pidpath(getppid(), parent, sizeof parent) > 0 && strcmp(own, parent) == 0;
    if (!*same || proc_pid_rusage(getppid(), RUSAGE_INFO_V0, (rusage_info_t *)&use) != 0) return 0;
    return use.ri_phys_footprint;
}

bool qsf_os_random(void *p, size_t n) {
    arc4random_buf(p, n);
    return true;
}

static uint64_t own_key[2];
static void make_key(void) { arc4random_buf(own_key, sizeof own_key); }

void qsf_os_process_key(uint64_t key[2]) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, make_key);
    key[0] = own_key[0];
    key[1] = own_key[1];
}

const char *qsf_os_caches_folder(void) { return "/Library/Caches"; }

void qsf_os_tame_heap(void) {}

void qsf_os_trim_heap(void) { (void)malloc_zone_pressure_relief(NULL, 0); }
