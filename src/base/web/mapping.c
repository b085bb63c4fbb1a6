/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pages of the linear memory, from its heap. What is unmapped can be mapped again, but the linear memory does
 * not shrink. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "src/base/platform.h"

#define PAGE ((size_t)4096)

void *qsf_os_map(size_t bytes) {
    void *p = bytes > SIZE_MAX / 2 ? NULL : aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    return p == NULL ? MAP_FAILED : memset(p, 0, bytes);
}

void qsf_os_unmap(void *p, size_t bytes) {
    (void)bytes;
    free(p);
}

bool qsf_os_maps_lazily(void) { return false; }

/* WebAssembly has pages of 64 KiB, but what is mapped here is a part of its memory. */
uint64_t qsf_os_page_bytes(void) { return PAGE; }
