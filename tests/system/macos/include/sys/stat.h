/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The times have Apple's names: POSIX's st_mtim is st_mtimespec there. */
#ifndef STUB_SYS_STAT_H
#define STUB_SYS_STAT_H
#include "../qsf_darwin.h"
struct stat {
    dev_t st_dev;
    mode_t st_mode;
    nlink_t st_nlink;
    ino_t st_ino;
    uid_t st_uid;
    gid_t st_gid;
    dev_t st_rdev;
    struct timespec st_atimespec;
    struct timespec st_mtimespec;
    struct timespec st_ctimespec;
    struct timespec st_birthtimespec;
    off_t st_size;
    blkcnt_t st_blocks;
    blksize_t st_blksize;
    uint32_t st_flags;
    uint32_t st_gen;
};
#define st_mtime    st_mtimespec.tv_sec
#define S_IFMT      0170000
#define S_ISREG(m)  (((m)&S_IFMT) == 0100000)
#define S_ISDIR(m)  (((m)&S_IFMT) == 0040000)
#define S_ISLNK(m)  (((m)&S_IFMT) == 0120000)
#define S_ISFIFO(m) (((m)&S_IFMT) == 0010000)
#define S_ISSOCK(m) (((m)&S_IFMT) == 0140000)
#define S_ISCHR(m)  (((m)&S_IFMT) == 0020000)
#define S_ISBLK(m)  (((m)&S_IFMT) == 0060000)
#define UTIME_NOW   (-1)
#define UTIME_OMIT  (-2)
int chmod(const char *path, mode_t mode);
int fchmod(int fd, mode_t mode);
int fstat(int fd, struct stat *out);
int fstatat(int dir, const char *path, struct stat *out, int flags);
int futimens(int fd, const struct timespec t[2]);
int lstat(const char *path, struct stat *out);
int mkdir(const char *path, mode_t mode);
int mkdirat(int dir, const char *path, mode_t mode);
int mkfifo(const char *path, mode_t mode);
int stat(const char *path, struct stat *out);
mode_t umask(mode_t mask);
#endif
