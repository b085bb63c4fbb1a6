/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mappings that move and huge pages: mremap(2), madvise(2). */
#include <string.h>
#include <sys/mman.h>

#include "src/base/platform.h"
#include "src/base/sanitizer.h"

#define HUGE ((uintptr_t)2 << 20)

void *qsf_os_remap(void *p, size_t old, size_t bytes) {
    if (!QSF_THREAD_SANITIZER) return mremap(p, old, bytes, MREMAP_MAYMOVE);
    /* It does not see mremap: memory that moves to where another thread's memory was would be a race. */
    void *to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (to == MAP_FAILED) return to;
    memcpy(to, p, old < bytes ? old : bytes);
    munmap(p, old);
    return to;
}

void qsf_os_discard(void *p, size_t bytes) { (void)madvise(p, bytes, MADV_DONTNEED); }

void qsf_os_huge_pages(void *p, size_t bytes) { (void)madvise(p, bytes, MADV_HUGEPAGE); }

void qsf_os_small_pages(void *p, size_t bytes) { (void)madvise(p, bytes, MADV_NOHUGEPAGE); }

/* A huge page of which a part is released is returned as a whole or not at all unless it is split first.
 * MADV_COLD on a part of it splits it and has no other significant effect. */
void qsf_os_split_page(void *cut) {
#ifdef MADV_COLD /* since Linux 5.4 */
    const uintptr_t head = (uintptr_t)cut % HUGE;
    if (head != 0) (void)madvise((char *)cut - head, head, MADV_COLD);
#else
    (void)cut;
#endif
}
