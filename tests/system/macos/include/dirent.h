/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef STUB_DIRENT_H
#define STUB_DIRENT_H
#include "qsf_darwin.h"
#define DT_UNKNOWN 0
#define DT_DIR     4
#define DT_REG     8
#define DT_LNK     10
struct dirent {
    uint64_t d_ino;
    uint64_t d_seekoff;
    uint16_t d_reclen;
    uint16_t d_namlen;
    uint8_t d_type;
    char d_name[1024];
};
typedef struct stub_dir DIR;
int closedir(DIR *d);
int dirfd(DIR *d);
DIR *fdopendir(int fd);
DIR *opendir(const char *path);
struct dirent *readdir(DIR *d);
void rewinddir(DIR *d);
#endif
