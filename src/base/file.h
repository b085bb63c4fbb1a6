/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Read-only model files. The size at open() is authoritative: a read past it, or a short read before it, is
 * an error, never a signal. Positions and sizes are in bytes. Any thread may read. */
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
    char *path;    /* owned copy, for messages */
    uint64_t size; /* at open */
    dev_t dev;
    ino_t ino;
    struct timespec mtime;
} QsfFile;

/* Opens a regular file. QSF_E_MODEL with the path and the reason if it is missing, a directory, a
 * FIFO or device (opened without blocking), or unreadable. */
int qsf_file_open(QsfFile *f, const char *path, QsfErr *err);
/* Closes the descriptor and frees the path. A zeroed file is allowed, and a closed one. */
void qsf_file_close(QsfFile *f);

/* Reads exactly len bytes at off into dst, restarting on EINTR and partial reads. QSF_E_MODEL if
 * [off, off+len) is not inside the size at open ("<path>: ... byte offset ..."), QSF_E_RUNTIME on
 * an I/O error or if the file has become shorter. */
int qsf_file_pread(const QsfFile *f, void *dst, size_t len, uint64_t off, QsfErr *err);

/* Makes one attempt to read len bytes at off. Returns how many were read, 0 at the end of the file, or
 * -errno; faults are not injected. */
int64_t qsf_file_read_some(const QsfFile *f, void *dst, size_t len, uint64_t off);

/* Hints that [off, off+len) will be read soon: the kernel starts reading it into the page cache. Does not
 * wait. */
void qsf_file_will_need(const QsfFile *f, uint64_t off, uint64_t len);

/* Checks that the file has not changed since it was opened. QSF_E_RUNTIME if its size or mtime differ, or if
 * its path now leads to a different file. A deleted file is not an error: it can still be read. */
int qsf_file_unchanged(const QsfFile *f, QsfErr *err);

/* Opens a second descriptor of the same file for O_DIRECT reads; the caller closes it. Returns -1 with errno
 * if the file system does not support them. */
int qsf_file_open_direct(const QsfFile *f);

/* Applies injected faults to the result of a read. For back ends that do not use qsf_file_pread: each passes
 * every result through here. got is the number of bytes read of len bytes at off, or -errno; returns got, or
 * the result that an injected fault replaces it with. */
int64_t qsf_file_filter(const QsfFile *f, uint64_t off, uint64_t len, int64_t got);
/* Sets *err for a read that stopped at byte off and returns QSF_E_RUNTIME. got is -errno, or 0 if the file
 * ended before the size at open. */
int qsf_file_read_error(const QsfFile *f, uint64_t off, int64_t got, QsfErr *err);

/* For a file that is still being downloaded, whose bytes from `end` are not there yet: reads that include any
 * of them fail like those of a file that ends there (QSF_E_RUNTIME), so that they are not taken for a fault
 * of its contents. Applies to all files of the process; UINT64_MAX ends it. */
void qsf_file_known_end(uint64_t end);
/* Test hook: reads that include byte `off` fail with errno_value (0 = a short read, as if the file
 * ended there). off UINT64_MAX clears it. Applies to every reader of model bytes. */
void qsf_file_inject_fault(uint64_t off, int errno_value);

#endif
