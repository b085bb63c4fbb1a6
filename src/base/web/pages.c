/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Blocks of the heap instead of pages. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "src/base/platform.h"

void *qsf_os_remap(void *p, size_t old, size_t bytes) {
    if (bytes <= old) return realloc(p, bytes); /* in place: the heap splits the block */
    void *to = qsf_os_map(bytes);
    if (to == MAP_FAILED) return MAP_FAILED;
    memcpy(to, p, old);
    free(p);
    return to;
}

void qsf_os_discard(void *p, size_t bytes) { memset(p, 0, bytes); }

void qsf_os_huge_pages(void *p, size_t bytes) { (void)p, (void)bytes; }
void qsf_os_small_pages(void *p, size_t bytes) { (void)p, (void)bytes; }
void qsf_os_split_page(void *cut) { (void)cut; }
