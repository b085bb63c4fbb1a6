/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Returns pages to the kernel. */
#include "src/base/discard.h"

#include <stddef.h>
#include <sys/mman.h>

#define PAGE ((uintptr_t)4096) /* the granularity of mappings (ledger.h) */

void qsf_mem_discard(void *p, uint64_t bytes) {
    uintptr_t from = ((uintptr_t)p + PAGE - 1) & ~(PAGE - 1),
              to = ((uintptr_t)p + (uintptr_t)bytes) & ~(PAGE - 1);
    if (p != NULL && from < to) madvise((void *)from, to - from, MADV_DONTNEED);
}
