/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Anonymous mappings. */
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/platform.h"

void *qsf_os_map(size_t bytes) {
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void qsf_os_unmap(void *p, size_t bytes) { munmap(p, bytes); }

uint64_t qsf_os_page_bytes(void) {
    const long bytes = sysconf(_SC_PAGESIZE);
    return bytes > 4096 ? (uint64_t)bytes : 4096;
}

bool qsf_os_maps_lazily(void) { return true; }
