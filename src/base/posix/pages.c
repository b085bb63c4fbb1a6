/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mappings that move, without a call for it; no huge pages. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/platform.h"

#define PIECE ((size_t)1 << 20) /* a multiple of every page size */

static size_t whole_pages(size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

static void *map(size_t bytes) {
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void *shrink(char *p, size_t old, size_t bytes) {
    const size_t keep = whole_pages(bytes), all = whole_pages(old);
    if (keep < all) munmap(p + keep, all - keep);
    return p;
}

/* Piece by piece, so that little is in memory twice. */
void *qsf_os_remap(void *p, size_t old, size_t bytes) {
    if (bytes <= old) return shrink(p, old, bytes);
    char *to = map(bytes), *from = p;
    if ((void *)to == MAP_FAILED) return MAP_FAILED;
    for (size_t at = 0; at < old; at += PIECE) {
        const size_t n = old - at < PIECE ? old - at : PIECE;
        memcpy(to + at, from + at, n);
        munmap(from + at, n);
    }
    return to;
}

/* Elsewhere than on Linux madvise may keep the contents: new pages take the place of the old ones. */
void qsf_os_discard(void *p, size_t bytes) {
    (void)mmap(p, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

void qsf_os_huge_pages(void *p, size_t bytes) { (void)p, (void)bytes; }
void qsf_os_small_pages(void *p, size_t bytes) { (void)p, (void)bytes; }
void qsf_os_split_page(void *cut) { (void)cut; }
