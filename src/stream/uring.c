/* SPDX-License-Identifier: GPL-3.0-or-later */
/* io_uring, through liburing: the one file that knows it. The ring belongs to the thread that calls. */
#include "src/stream/io_impl.h"

#if QSF_HAVE_URING

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIXED_MAX (1ull << 30) /* the kernel registers at most this much as one buffer */

typedef struct Ring {
    struct io_uring ring;
    bool fixed;                     /* o.buffers is registered, as buffer 0 */
    QsfIoRead *reads[QSF_IO_DEPTH]; /* in flight; the index is the request's name */
    QsfIoStep steps[QSF_IO_DEPTH];
} Ring;

static bool can_read(struct io_uring *ring) {
    struct io_uring_probe *p = io_uring_get_probe_ring(ring);
    bool ok = p != NULL && io_uring_opcode_supported(p, IORING_OP_READ);
    io_uring_free_probe(p);
    return ok;
}

/* Registered memory is locked and may exceed a limit of the user: then without. */
static void register_buffers(const QsfIo *io, Ring *u) {
    if (io->o.buffers == NULL || io->o.buffer_bytes == 0 || io->o.buffer_bytes > FIXED_MAX) return;
    struct iovec v = { io->o.buffers, (size_t)io->o.buffer_bytes };
    u->fixed = io_uring_register_buffers(&u->ring, &v, 1) == 0;
}

static int open_uring(QsfIo *io, const char **why) {
    struct io_uring_params p;
    Ring *u = calloc(1, sizeof *u);
    *why = qsf_io_no_memory;
    if (u == NULL) return QSF_E_RUNTIME;
    memset(&p, 0, sizeof p);
    int rc = io_uring_queue_init_params(QSF_IO_DEPTH, &u->ring, &p);
    if (rc < 0) {
        *why = strerror(-rc);
        free(u);
        return QSF_E_RUNTIME;
    }
    if (!can_read(&u->ring)) {
        *why = "the kernel is too old";
        io_uring_queue_exit(&u->ring);
        free(u);
        return QSF_E_RUNTIME;
    }
    register_buffers(io, u);
    io->state = u;
    return QSF_OK;
}

static bool is_fixed(const QsfIo *io, const Ring *u, const QsfIoStep *s) {
    return u->fixed && s->dst >= io->o.buffers && s->dst + s->len <= io->o.buffers + io->o.buffer_bytes;
}

/* Hands the next step of request i to the kernel. When it takes no more, the step is done here and now. */
static void submit(QsfIo *io, Ring *u, unsigned i) {
    QsfIoRead *r = u->reads[i];
    for (;;) {
        QsfIoStep *s = &u->steps[i];
        *s = qsf_io_step(io, r);
        struct io_uring_sqe *e = io_uring_get_sqe(&u->ring);
        if (e != NULL) {
            if (is_fixed(io, u, s))
                io_uring_prep_read_fixed(e, s->fd, s->dst, (unsigned)s->len, s->off, 0);
            else
                io_uring_prep_read(e, s->fd, s->dst, (unsigned)s->len, s->off);
            io_uring_sqe_set_data(e, (void *)(uintptr_t)(i + 1));
            int rc;
            do rc = io_uring_submit(&u->ring);
            while (rc == -EINTR || rc == -EAGAIN || rc == -EBUSY);
            if (rc >= 0) return;
        }
        ssize_t n = pread(s->fd, s->dst, (size_t)s->len, (off_t)s->off);
        if (!qsf_io_take(io, r, s, n < 0 ? -errno : n)) continue;
        r->busy = false;
        u->reads[i] = NULL;
        return;
    }
}

static void complete(QsfIo *io, Ring *u, struct io_uring_cqe *c) {
    uintptr_t name = (uintptr_t)io_uring_cqe_get_data(c);
    int result = c->res;
    io_uring_cqe_seen(&u->ring, c);
    if (name == 0 || name > QSF_IO_DEPTH || u->reads[name - 1] == NULL) return;
    QsfIoRead *r = u->reads[name - 1];
    if (!qsf_io_take(io, r, &u->steps[name - 1], result)) {
        submit(io, u, (unsigned)name - 1);
        return;
    }
    r->busy = false;
    u->reads[name - 1] = NULL;
}

static void start_uring(QsfIo *io, QsfIoRead *r) {
    Ring *u = io->state;
    unsigned i = 0;
    while (u->reads[i] != NULL) i++; /* at most QSF_IO_DEPTH are in flight: the caller's promise */
    u->reads[i] = r;
    submit(io, u, i);
}

static void wait_uring(QsfIo *io, QsfIoRead *r) {
    Ring *u = io->state;
    struct io_uring_cqe *c;
    while (r->busy) {
        if (io_uring_wait_cqe(&u->ring, &c) == 0) complete(io, u, c);
    }
}

static bool done_uring(QsfIo *io, QsfIoRead *r) {
    Ring *u = io->state;
    struct io_uring_cqe *c;
    while (r->busy && io_uring_peek_cqe(&u->ring, &c) == 0) complete(io, u, c);
    return !r->busy;
}

static void close_uring(QsfIo *io) {
    Ring *u = io->state;
    if (u == NULL) return;
    for (unsigned i = 0; i < QSF_IO_DEPTH; i++) {
        if (u->reads[i] != NULL) wait_uring(io, u->reads[i]);
    }
    io_uring_queue_exit(&u->ring);
    free(u);
    io->state = NULL;
}

const QsfIoBackend qsf_io_uring = {
    .kind = QSF_IO_URING,
    .name = "io_uring",
    .open = open_uring,
    .close = close_uring,
    .start = start_uring,
    .wait = wait_uring,
    .done = done_uring,
};

#else

static int open_none(QsfIo *io, const char **why) {
    (void)io;
    *why = "not built in";
    return QSF_E_RUNTIME;
}

const QsfIoBackend qsf_io_uring = { .kind = QSF_IO_URING, .name = "io_uring", .open = open_none };

#endif
