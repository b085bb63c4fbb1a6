/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opening and reading model files: what file.h needs of the system. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/checked.h"
#include "src/base/file.h"
#include "src/base/platform.h"

static const char *kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISSOCK(mode)) return "a socket";
    return "a device";
}

/* Caches of models consist of links; their files may have been removed. */
static int cannot_open(const char *path, int why, QsfErr *err) {
    struct stat st;
    if (why == ENOENT && lstat(path, &st) == 0)
        return qsf_err_set(err, QSF_E_MODEL, "%s: cannot open: it is a link to a file that does not exist",
                           path);
    return qsf_err_set(err, QSF_E_MODEL, "%s: cannot open: %s", path, strerror(why));
}

int qsf_file_open(QsfFile *f, const char *path, QsfErr *err) {
    *f = (QsfFile){ .fd = -1 };
    /* O_NONBLOCK: opening a FIFO without a writer must not hang; it has no effect on regular files. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return cannot_open(path, errno, err);
    struct stat st;
    if (fstat(fd, &st) != 0) {
        int e = errno;
        close(fd);
        return qsf_err_set(err, QSF_E_RUNTIME, "%s: cannot stat: %s", path, strerror(e));
    }
    if (!S_ISREG(st.st_mode)) {
        close(fd);
        return qsf_err_set(err, QSF_E_MODEL, "%s: is %s, not a file", path, kind_of(st.st_mode));
    }
    f->path = strdup(path);
    if (f->path == NULL) {
        close(fd);
        return qsf_err_memory(err, "%s", path);
    }
    f->fd = fd;
    f->size = (uint64_t)st.st_size;
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    f->mtime = st.st_mtim;
    return QSF_OK;
}

void qsf_file_close(QsfFile *f) {
    if (f->fd >= 0 && f->path != NULL) close(f->fd);
    free(f->path);
    *f = (QsfFile){ .fd = -1 };
}

int64_t qsf_file_read_some(const QsfFile *f, void *dst, size_t len, uint64_t off) {
    const ssize_t n = pread(f->fd, dst, len, (off_t)off);
    return n < 0 ? -errno : n;
}

int qsf_file_open_direct(const QsfFile *f) {
    const int fd = qsf_os_open_direct(f->fd, f->path);
    struct stat st;
    if (fd < 0 || (fstat(fd, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino)) return fd;
    close(fd);
    errno = ESTALE;
    return -1;
}

void qsf_file_will_need(const QsfFile *f, uint64_t off, uint64_t len) {
    if (qsf_range_ok(off, len, f->size)) qsf_os_advise(f->fd, off, len, QSF_ADVICE_WILL_NEED);
}

int qsf_file_unchanged(const QsfFile *f, QsfErr *err) {
    struct stat st;
    if (fstat(f->fd, &st) != 0) return qsf_err_file(err, "%s: cannot stat: %s", f->path, strerror(errno));
    if ((uint64_t)st.st_size != f->size)
        return qsf_err_file(err, "%s: the file changed: it had %llu bytes, now it has %lld", f->path,
                            (unsigned long long)f->size, (long long)st.st_size);
    if (st.st_mtim.tv_sec != f->mtime.tv_sec || st.st_mtim.tv_nsec != f->mtime.tv_nsec)
        return qsf_err_file(err, "%s: the file was modified since it was opened", f->path);
    /* A deleted file can still be read through the open descriptor; a different file at its path is a
     * different model. */
    if (stat(f->path, &st) == 0 && (st.st_dev != f->dev || st.st_ino != f->ino))
        return qsf_err_file(err, "%s: the file was replaced since it was opened", f->path);
    return QSF_OK;
}
