/* SPDX-License-Identifier: GPL-3.0-or-later */
/* This process and its parent, by /proc; random bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "qsf_system.h"
#include "src/base/platform.h"

#define SELF "/proc/self/exe"

bool qsf_program_path(char *out, size_t cap) {
    const ssize_t n = readlink(SELF, out, cap);
    if (n <= 0 || (size_t)n >= cap) return false;
    out[n] = '\0';
    return true;
}

bool qsf_program_again(char *out, size_t cap) {
    return snprintf(out, cap, "%s", SELF) < (int)cap && access(SELF, X_OK) == 0;
}

/* proc(5): the second number is the resident pages. */
static uint64_t resident(const char *statm) {
    unsigned long pages = 0;
    FILE *f = fopen(statm, "re");
    if (f != NULL && fscanf(f, "%*u %lu", &pages) != 1) pages = 0;
    if (f != NULL) (void)fclose(f);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t qsf_parent_bytes(bool *same) {
    char path[64];
    struct stat own, parent;
    (void)snprintf(path, sizeof path, "/proc/%ld/exe", (long)getppid());
    *same = stat(SELF, &own) == 0 && stat(path, &parent) == 0 && own.st_ino == parent.st_ino &&
            own.st_dev == parent.st_dev;
    if (!*same) return 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/statm", (long)getppid());
    return resident(path);
}

bool qsf_os_random(void *p, size_t n) { return getrandom(p, n, 0) == (ssize_t)n; }

/* 16 random bytes that the kernel gives every process. */
void qsf_os_process_key(uint64_t key[2]) {
    static _Atomic(const void *) where; /* cached: a vocabulary needs it a million times */
    const void *r = atomic_load_explicit(&where, memory_order_relaxed);
    if (r == NULL) {
        r = (const void *)(uintptr_t)getauxval(AT_RANDOM);
        atomic_store_explicit(&where, r, memory_order_relaxed);
    }
    key[0] = key[1] = 0;
    if (r != NULL) memcpy(key, r, 16);
}

const char *qsf_os_caches_folder(void) { return NULL; }

void qsf_os_tame_heap(void) {
#ifdef __GLIBC__
    (void)mallopt(M_ARENA_MAX, 1);
    (void)mallopt(M_MMAP_THRESHOLD, 64 << 10);
    (void)mallopt(M_TRIM_THRESHOLD, 64 << 10);
#endif
}

void qsf_os_trim_heap(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
