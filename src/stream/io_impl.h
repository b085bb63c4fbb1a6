/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the back ends of io.h share. */
#ifndef QSF_STREAM_IO_IMPL_H
#define QSF_STREAM_IO_IMPL_H

#include <stdatomic.h>

#include "src/stream/io.h"

/* One part of the source, as it is read. */
typedef struct QsfIoFile {
    const QsfFile *f;
    bool computed;      /* the virtual file of the source: the source makes its bytes */
    int direct_fd;      /* -1: the file system has none, or it is not wanted */
    atomic_bool direct; /* false: f->fd, through the page cache */
} QsfIoFile;

/* What open says when it lacks memory; compared by its address. */
extern const char qsf_io_no_memory[];

/* How bytes are moved. Functions are called as those of io.h; wait returns when r is not busy, done tells
 * without waiting whether it is not. */
typedef struct QsfIoBackend {
    QsfIoKind kind;
    const char *name;
    /* On failure sets *why (static, or of strerror): it is not available here, or memory runs out. */
    int (*open)(QsfIo *io, const char **why);
    void (*close)(QsfIo *io);
    void (*start)(QsfIo *io, QsfIoRead *r);
    void (*wait)(QsfIo *io, QsfIoRead *r);
    bool (*done)(QsfIo *io, QsfIoRead *r);
} QsfIoBackend;

extern const QsfIoBackend qsf_io_uring, qsf_io_pread, qsf_io_mmap;
extern const QsfIoBackend qsf_io_computed; /* reads the virtual file, beside any other */

struct QsfIo {
    QsfIoOptions o;
    const QsfIoBackend *be;
    void *state;   /* the back end's */
    void *threads; /* those of qsf_io_threads_open, which also make computed bytes; NULL if there are none */
    QsfIoFile *file; /* (n_files) */
    uint32_t n_files;
    bool drop;          /* pages that were read do not stay in the page cache */
    bool computed_once; /* nor those that computed bytes were made from, which are read through it */
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
/* Makes the bytes of a read of the virtual file. Any thread. */
void qsf_io_compute(QsfIo *io, QsfIoRead *r);
/* Result of that attempt (bytes, or -errno) taken into r; true when r is done, well or not. Any thread. */
bool qsf_io_take(QsfIo *io, QsfIoRead *r, const QsfIoStep *s, int64_t result);

/* A few threads that take reads from a queue: the machinery of the pread and mmap back ends, and of reads of
 * the virtual file with any back end. */
/* Does one attempt; bytes, or -errno. */
typedef int64_t (*QsfIoStepFn)(QsfIo *io, const QsfIoRead *r, const QsfIoStep *s);

/* Back-end functions; fn is what the threads do, NULL if they only make computed bytes. */
int qsf_io_threads_open(QsfIo *io, QsfIoStepFn fn, const char **why);
void qsf_io_threads_close(QsfIo *io);
void qsf_io_threads_start(QsfIo *io, QsfIoRead *r);
void qsf_io_threads_wait(QsfIo *io, QsfIoRead *r);
bool qsf_io_threads_done(QsfIo *io, QsfIoRead *r);

#endif
