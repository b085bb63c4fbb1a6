/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A few threads that take reads from a queue: the machinery of the pread and mmap back ends, and of reads of
 * the virtual file with any back end. */
#ifndef QSF_STREAM_IO_THREADS_H
#define QSF_STREAM_IO_THREADS_H

#include "src/stream/io_impl.h"

/* Does one attempt; bytes, or -errno. */
typedef int64_t (*QsfIoStepFn)(QsfIo *io, const QsfIoRead *r, const QsfIoStep *s);

/* Back-end functions; fn is what the threads do, NULL if they only make computed bytes. */
int qsf_io_threads_open(QsfIo *io, QsfIoStepFn fn, const char **why);
void qsf_io_threads_close(QsfIo *io);
void qsf_io_threads_start(QsfIo *io, QsfIoRead *r);
void qsf_io_threads_poll(QsfIo *io, QsfIoRead *r);
void qsf_io_threads_wait(QsfIo *io, QsfIoRead *r);
bool qsf_io_threads_busy(QsfIo *io, const QsfIoRead *r);

#endif
