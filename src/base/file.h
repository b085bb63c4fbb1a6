/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Read-only model files. The size at open() is the law: a read past it or short of it is an
 * error, never a signal. Positions and sizes are bytes. Reads may come from any thread. */
#ifndef QSF_BASE_FILE_H
#define QSF_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "src/base/err.h"

typedef struct QsfFile {
    int fd;
    char *path;     /* owned copy, for messages */
    uint64_t size;  /* at open */
    dev_t dev;
    ino_t ino;
    struct timespec mtime;
} QsfFile;

/* Opens a regular file. QSF_E_MODEL with the path and the reason when it is missing, a directory,
 * a FIFO or device (opened without blocking), or unreadable. */
int qsf_file_open(QsfFile *f, const char *path, QsfErr *err);
void qsf_file_close(QsfFile *f);

/* Reads exactly len bytes at off into dst, restarting on EINTR and partial reads. QSF_E_MODEL when
 * [off, off+len) is not inside the size at open ("<path>: ... byte offset ..."), QSF_E_RUNTIME on
 * an I/O error or when the file has become shorter. */
int qsf_file_pread(const QsfFile *f, void *dst, size_t len, uint64_t off, QsfErr *err);

/* Asks the kernel to fetch [off, off+len) into the page cache, and no more; returns before it is there. A hint. */
void qsf_file_will_need(const QsfFile *f, uint64_t off, uint64_t len);

/* QSF_E_RUNTIME when size or mtime of the open file differ from what they were at open, or when another file
 * stands at its path now. A path at which nothing stands any more is fine: the open file lives on. */
int qsf_file_unchanged(const QsfFile *f, QsfErr *err);

/* A second descriptor of the same file for O_DIRECT reads; the caller closes it. -1 with errno where the file
 * system has none. */
int qsf_file_open_direct(const QsfFile *f);

/* For back ends that read by themselves. got: bytes of a read of len bytes at off, or -errno; returns the same, or
 * what an injected fault makes of it. Every back end passes every result through here, so that all see the same
 * faults. */
int64_t qsf_file_filter(const QsfFile *f, uint64_t off, uint64_t len, int64_t got);
/* The error of a read that stopped at byte off: got is -errno, or 0 for an end before the size at open. Sets *err
 * and returns QSF_E_RUNTIME. */
int qsf_file_read_error(const QsfFile *f, uint64_t off, int64_t got, QsfErr *err);

/* Test hook: the next reads that touch byte `off` fail with errno_value (0 = a short read, as if
 * the file ended there). off UINT64_MAX clears it. Every reader of model bytes sees it. */
void qsf_file_inject_fault(uint64_t off, int errno_value);

#endif
