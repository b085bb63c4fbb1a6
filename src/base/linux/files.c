/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files: O_DIRECT, O_TMPFILE, memfd_create(2), and what the page cache holds. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "src/base/platform.h"

const char *qsf_os_direct_name(void) { return "O_DIRECT"; }

void qsf_os_fd_path(int fd, char out[QSF_FD_PATH_MAX]) {
    (void)snprintf(out, QSF_FD_PATH_MAX, "/proc/self/fd/%d", fd);
}

int qsf_os_open_direct(int fd, const char *path) {
    const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_DIRECT;
    char self[QSF_FD_PATH_MAX];
    qsf_os_fd_path(fd, self);
    const int again = open(self, flags); /* the same file, wherever its path leads now */
    return again < 0 && errno == ENOENT ? open(path, flags) : again; /* no /proc */
}

void qsf_os_advise(int fd, uint64_t off, uint64_t bytes, QsfAdvice advice) {
    static const int of[] = { [QSF_ADVICE_NORMAL] = POSIX_FADV_NORMAL,
                              [QSF_ADVICE_SEQUENTIAL] = POSIX_FADV_SEQUENTIAL,
                              [QSF_ADVICE_RANDOM] = POSIX_FADV_RANDOM,
                              [QSF_ADVICE_WILL_NEED] = POSIX_FADV_WILLNEED,
                              [QSF_ADVICE_DONT_NEED] = POSIX_FADV_DONTNEED };
    (void)posix_fadvise(fd, (off_t)off, (off_t)bytes, of[advice]);
}

/* ---- what the page cache holds */

/* linux/magic.h: file systems whose files are memory. */
static bool in_memory(int fd) {
    struct statfs s;
    if (fstatfs(fd, &s) != 0) return false;
    unsigned long type = (unsigned long)s.f_type & 0xFFFFFFFFu;
    return type == 0x01021994u || type == 0x858458F6u; /* tmpfs, ramfs */
}

/* Is mincore reliable? Linux reports the true state only to the owner of a file and to processes that may
 * write it; to others it reports every page as resident. */
static bool mincore_is_reliable(int fd, const char *path) {
    struct stat s;
    if (fstat(fd, &s) == 0 && s.st_uid == geteuid()) return true;
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

/* Is the byte in memory? Reads nothing. -1 when unknown. */
static int in_core(int fd, uint64_t off) {
    unsigned char is = 0;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *at = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, (off_t)(off - off % page));
    if (at == MAP_FAILED) return -1;
    int rc = mincore(at, page, &is);
    munmap(at, page);
    return rc == 0 ? is & 1 : -1;
}

/* Can the byte be read without waiting for a disk? A disk that answers immediately looks like memory here. */
static bool read_without_wait(int fd, uint64_t off) {
#ifdef RWF_NOWAIT /* glibc 2.26, musl 1.2.5 */
    char byte;
    struct iovec v = { &byte, 1 };
    return preadv2(fd, &v, 1, (off_t)off, RWF_NOWAIT) == 1;
#else
    (void)fd;
    (void)off;
    return false;
#endif
}

bool qsf_os_is_cached(int fd, const char *path, uint64_t off) {
    if (in_memory(fd)) return true;
    const int in = mincore_is_reliable(fd, path) ? in_core(fd, off) : -1;
    return in >= 0 ? in == 1 : read_without_wait(fd, off);
}

/* ---- writing */

void qsf_os_write_back(int fd, uint64_t off, uint64_t bytes) {
    (void)sync_file_range(fd, (off_t)off, (off_t)bytes,
                          SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    (void)posix_fadvise(fd, (off_t)off, (off_t)bytes, POSIX_FADV_DONTNEED);
}

int qsf_os_sync(int fd) { return fsync(fd); }
int qsf_os_sync_data(int fd) { return fdatasync(fd); }

/* ---- files without a name */

int qsf_os_open_unlisted(const char *path) { return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC); }

/* Its later name is made through /proc. */
int qsf_os_open_nameless(int dir, mode_t mode) {
    if (faccessat(AT_FDCWD, "/proc/self/fd", X_OK, 0) != 0) return -1;
    return openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
}

int qsf_os_link_nameless(int fd, int dir, const char *name) {
    char self[QSF_FD_PATH_MAX];
    qsf_os_fd_path(fd, self);
    return linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW) != 0 ? errno : 0;
}

int qsf_os_memory_file(const char *name) { return memfd_create(name, MFD_CLOEXEC); }
