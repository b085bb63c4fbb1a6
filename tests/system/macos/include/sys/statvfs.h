/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_SYS_STATVFS_H
#define STUB_SYS_STATVFS_H
#include "../qsf_darwin.h"
struct statvfs {
    unsigned long f_bsize;
    unsigned long f_frsize;
    uint32_t f_blocks;
    uint32_t f_bfree;
    uint32_t f_bavail;
};
int fstatvfs(int fd, struct statvfs *out);
int statvfs(const char *path, struct statvfs *out);
#endif
