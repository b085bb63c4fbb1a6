/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files where nothing but POSIX is known: no reads past the page cache, no files without a name. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "qsf_system.h"
#include "src/base/platform.h"

const char *qsf_os_direct_name(void) { return "reading past the page cache"; }

int qsf_os_open_direct(int fd, const char *path) {
    (void)fd, (void)path;
    errno = ENOTSUP;
    return -1;
}

void qsf_os_advise(int fd, uint64_t off, uint64_t bytes, QsfAdvice advice) {
    static const int of[] = { [QSF_ADVICE_NORMAL] = POSIX_FADV_NORMAL,
                              [QSF_ADVICE_SEQUENTIAL] = POSIX_FADV_SEQUENTIAL,
                              [QSF_ADVICE_RANDOM] = POSIX_FADV_RANDOM,
                              [QSF_ADVICE_WILL_NEED] = POSIX_FADV_WILLNEED,
                              [QSF_ADVICE_DONT_NEED] = POSIX_FADV_DONTNEED };
    (void)posix_fadvise(fd, (off_t)off, (off_t)bytes, of[advice]);
}

bool qsf_os_is_cached(int fd, const char *path, uint64_t off) {
    (void)fd, (void)path, (void)off;
    return false;
}

void qsf_os_write_back(int fd, uint64_t off, uint64_t bytes) {
    if (fsync(fd) == 0) (void)posix_fadvise(fd, (off_t)off, (off_t)bytes, POSIX_FADV_DONTNEED);
}

int qsf_os_sync(int fd) { return fsync(fd); }
int qsf_os_sync_data(int fd) { return fdatasync(fd); }

int qsf_os_open_unlisted(const char *path) {
    (void)path;
    errno = EACCES;
    return -1;
}

int qsf_os_open_nameless(int dir, mode_t mode) {
    (void)dir, (void)mode;
    return -1;
}

int qsf_os_link_nameless(int fd, int dir, const char *name) {
    (void)fd, (void)dir, (void)name;
    return ENOTSUP;
}

int qsf_os_memory_file(const char *name) {
    (void)name;
    return qsf_temp_file();
}

void qsf_os_fd_path(int fd, char out[QSF_FD_PATH_MAX]) {
    (void)snprintf(out, QSF_FD_PATH_MAX, "/dev/fd/%d", fd);
}
