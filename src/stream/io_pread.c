/* SPDX-License-Identifier: GPL-3.0-or-later */
/* pread back end: a few threads; works everywhere. */
#include <errno.h>
#include <unistd.h>

#include "src/stream/io_threads.h"

static int64_t read_step(QsfIo *io, const QsfIoRead *r, const QsfIoStep *s) {
    (void)io;
    (void)r;
    ssize_t n = pread(s->fd, s->dst, (size_t)s->len, (off_t)s->off);
    return n < 0 ? -errno : n;
}

static int open_pread(QsfIo *io, const char **why) { return qsf_io_threads_open(io, read_step, why); }

const QsfIoBackend qsf_io_pread = {
    .kind = QSF_IO_PREAD,
    .name = "pread",
    .open = open_pread,
    .close = qsf_io_threads_close,
    .start = qsf_io_threads_start,
    .poll = qsf_io_threads_poll,
    .wait = qsf_io_threads_wait,
    .busy = qsf_io_threads_busy,
};
