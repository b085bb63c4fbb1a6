/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files: fcntl(2) of macOS has what other systems have as flags or calls. No files without a name. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qsf_system.h"
#include "src/base/platform.h"

const char *qsf_os_direct_name(void) { return "F_NOCACHE"; }

/* The flag belongs to what open made, and a descriptor of /dev/fd would share it: hence the path. */
int qsf_os_open_direct(int fd, const char *path) {
    (void)fd;
    const int again = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (again < 0 || fcntl(again, F_NOCACHE, 1) != -1) return again;
    const int why = errno;
    close(again);
    errno = why;
    return -1;
}

static void read_ahead(int fd, uint64_t off, uint64_t bytes) {
    struct radvisory range = { .ra_offset = (off_t)off, .ra_count = bytes < INT_MAX ? (int)bytes : INT_MAX };
    (void)fcntl(fd, F_RDADVISE, &range);
}

/* There is nothing for DONT_NEED: what is read past the page cache does not fill it. */
void qsf_os_advise(int fd, uint64_t off, uint64_t bytes, QsfAdvice advice) {
    if (advice == QSF_ADVICE_WILL_NEED) read_ahead(fd, off, bytes);
    if (advice <= QSF_ADVICE_RANDOM) (void)fcntl(fd, F_RDAHEAD, advice != QSF_ADVICE_RANDOM);
}

bool qsf_os_is_cached(int fd, const char *path, uint64_t off) {
    char is = 0;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *at = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, (off_t)(off - off % page));
    (void)path;
    if (at == MAP_FAILED) return false;
    const bool told = mincore(at, page, &is) == 0;
    munmap(at, page);
    return told && (is & 1) != 0;
}

void qsf_os_write_back(int fd, uint64_t off, uint64_t bytes) {
    (void)off, (void)bytes;
    (void)fsync(fd);
}

/* fsync(2) leaves the bytes in the memory of the disk. File systems of other machines know no more than
 * that. */
int qsf_os_sync(int fd) { return fcntl(fd, F_FULLFSYNC) != -1 ? 0 : fsync(fd); }
int qsf_os_sync_data(int fd) { return fcntl(fd, F_BARRIERFSYNC) != -1 ? 0 : fsync(fd); }

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

/* What shm_open makes can only be mapped. */
int qsf_os_memory_file(const char *name) {
    (void)name;
    return qsf_temp_file();
}

void qsf_os_fd_path(int fd, char out[QSF_FD_PATH_MAX]) {
    (void)snprintf(out, QSF_FD_PATH_MAX, "/dev/fd/%d", fd);
}
