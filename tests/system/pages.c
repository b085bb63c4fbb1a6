/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Loaded before a program (LD_PRELOAD): the calls by which it maps memory, on a machine with pages of 16 KiB.
 * Mappings begin at multiples of that and end there; a call for another address is reported and fails, as it
 * does there. What libraries and the C library map themselves stays as it is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE ((size_t)16384)

static size_t up(size_t n) { return (n + PAGE - 1) / PAGE * PAGE; }

static int is_bad(const char *call, const void *p) {
    if ((uintptr_t)p % PAGE == 0) return 0;
    (void)dprintf(2, "pages: %s of %p, which is not at a multiple of %zu\n", call, p, PAGE);
    errno = EINVAL;
    return 1;
}

long sysconf(int name) {
    static long (*next)(int);
    if (name == _SC_PAGESIZE) return (long)PAGE;
    if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "sysconf");
    return next(name);
}

static void *map(void *p, size_t n, int prot, int flags, int fd, off_t off) {
    return (void *)syscall(SYS_mmap, p, n, prot, flags, fd, off);
}

/* With a page more, of which what is too much is returned. */
void *mmap(void *p, size_t n, int prot, int flags, int fd, off_t off) {
    if ((flags & MAP_FIXED) != 0) return is_bad("mmap", p) ? MAP_FAILED : map(p, n, prot, flags, fd, off);
    if (off % (off_t)PAGE != 0) {
        is_bad("mmap of a file at", (const void *)(uintptr_t)off);
        return MAP_FAILED;
    }
    char *all = map(NULL, up(n) + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if ((void *)all == MAP_FAILED) return MAP_FAILED;
    char *at = (char *)up((uintptr_t)all);
    if (at > all) syscall(SYS_munmap, all, at - all);
    syscall(SYS_munmap, at + up(n), all + PAGE - at);
    return map(at, fd < 0 ? up(n) : n, prot, flags | MAP_FIXED, fd, off);
}

int munmap(void *p, size_t n) { return is_bad("munmap", p) ? -1 : (int)syscall(SYS_munmap, p, up(n)); }

int mprotect(void *p, size_t n, int prot) {
    return is_bad("mprotect", p) ? -1 : (int)syscall(SYS_mprotect, p, up(n), prot);
}

int madvise(void *p, size_t n, int advice) {
    return is_bad("madvise", p) ? -1 : (int)syscall(SYS_madvise, p, n, advice);
}

void *mremap(void *p, size_t old, size_t n, int flags, ...) {
    if (is_bad("mremap", p)) return MAP_FAILED;
    if (up(n) <= up(old)) return (void *)syscall(SYS_mremap, p, up(old), up(n), 0);
    void *to = mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (to == MAP_FAILED) return to;
    return (void *)syscall(SYS_mremap, p, up(old), up(n), flags | MREMAP_MAYMOVE | MREMAP_FIXED, to);
}
