/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_SYS_MOUNT_H
#define STUB_SYS_MOUNT_H
#include "../qsf_darwin.h"
struct statfs {
    uint32_t f_bsize;
    int32_t f_iosize;
    uint64_t f_blocks;
    uint64_t f_bfree;
    uint64_t f_bavail;
    char f_fstypename[16];
};
int fstatfs(int fd, struct statfs *out);
#endif
