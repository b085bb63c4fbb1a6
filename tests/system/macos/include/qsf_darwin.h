/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Types that several headers of this folder share: those of Apple's 64-bit systems. */
#ifndef STUB_DARWIN_H
#define STUB_DARWIN_H

#include <stddef.h>
#include <stdint.h>

typedef int64_t off_t;
typedef long ssize_t;
typedef int32_t pid_t;
typedef uint32_t uid_t;
typedef uint32_t gid_t;
typedef int32_t dev_t;
typedef uint64_t ino_t;
typedef uint16_t mode_t;
typedef uint16_t nlink_t;
typedef int64_t blkcnt_t;
typedef int32_t blksize_t;
typedef long time_t;
typedef unsigned long clock_t;
typedef int32_t suseconds_t;
typedef uint32_t useconds_t;
typedef uint32_t sigset_t;
typedef int32_t wint_t;

struct timespec {
    time_t tv_sec;
    long tv_nsec;
};
struct timeval {
    time_t tv_sec;
    suseconds_t tv_usec;
};

#endif
