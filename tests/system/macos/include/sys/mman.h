/* SPDX-License-Identifier: GPL-3.0-or-later */
/* No mremap, memfd_create, MADV_HUGEPAGE or MADV_COLD there; MADV_DONTNEED leaves contents alone. */
#ifndef STUB_SYS_MMAN_H
#define STUB_SYS_MMAN_H
#include "../qsf_darwin.h"
#define PROT_NONE       0
#define PROT_READ       1
#define PROT_WRITE      2
#define MAP_SHARED      0x0001
#define MAP_PRIVATE     0x0002
#define MAP_FIXED       0x0010
#define MAP_ANON        0x1000
#define MAP_ANONYMOUS   MAP_ANON
#define MAP_FAILED      ((void *)-1)
#define MADV_NORMAL     0
#define MADV_RANDOM     1
#define MADV_SEQUENTIAL 2
#define MADV_WILLNEED   3
#define MADV_DONTNEED   4
#define MADV_FREE       5
int madvise(void *p, size_t bytes, int advice);
int mincore(const void *p, size_t bytes, char *out);
void *mmap(void *p, size_t bytes, int prot, int flags, int fd, off_t off);
int mprotect(void *p, size_t bytes, int prot);
int munmap(void *p, size_t bytes);
#endif
