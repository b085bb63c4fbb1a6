/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the back ends of io.h share. */
#ifndef QSF_STREAM_IO_IMPL_H
#define QSF_STREAM_IO_IMPL_H

#include <stdatomic.h>

#include "src/stream/io.h"

/* One part of the source, as it is read. */
typedef struct QsfIoFile {
    const QsfFile *f;
    int direct_fd;      /* -1: the file system has none, or it is not wanted */
    atomic_bool direct; /* false: f->fd, through the page cache */
} QsfIoFile;

/* How bytes are moved. Functions are called as those of io.h; wait returns when r is not busy. */
typedef struct QsfIoBackend {
    QsfIoKind kind;
    const char *name;
    /* Sets *why (static, or of strerror) when it is not available here. */
    int (*open)(QsfIo *io, const char **why);
    void (*close)(QsfIo *io);
    void (*start)(QsfIo *io, QsfIoRead *r);
    void (*poll)(QsfIo *io, QsfIoRead *r);
    void (*wait)(QsfIo *io, QsfIoRead *r);
    bool (*busy)(QsfIo *io, const QsfIoRead *r);
} QsfIoBackend;

extern const QsfIoBackend qsf_io_uring, qsf_io_pread, qsf_io_mmap;

struct QsfIo {
    QsfIoOptions o;
    const QsfIoBackend *be;
    void *state;     /* the back end's */
    QsfIoFile *file; /* (n_files) */
    uint32_t n_files;
    bool drop; /* pages that were read do not stay in the page cache */
    char name[32], notice[160];
};

/* Makes one attempt to continue r. */
typedef struct QsfIoStep {
    int fd;
    uint64_t off, len;
    uint8_t *dst;
} QsfIoStep;

/* The next attempt: from where r got to, from a window's start for O_DIRECT. */
QsfIoStep qsf_io_step(const QsfIo *io, const QsfIoRead *r);
/* Result of that attempt (bytes, or -errno) taken into r; true when r is done, well or not. Any thread. */
bool qsf_io_take(QsfIo *io, QsfIoRead *r, const QsfIoStep *s, int64_t result);

#endif
