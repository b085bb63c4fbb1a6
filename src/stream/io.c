/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chooses the back end, and continues each read until it is complete. */
#include "src/stream/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/platform.h"
#include "src/stream/io_impl.h"

#define CACHED_ENOUGH 0.75
#define N_BACKENDS    2

/* Back ends to try for each kind; a fallback for a kind that the user selected gives a notice. */
static const QsfIoBackend *const choices[QSF_IO_N][N_BACKENDS] = {
    [QSF_IO_AUTO] = { &qsf_io_uring, &qsf_io_pread },
    [QSF_IO_URING] = { &qsf_io_uring, &qsf_io_pread },
    [QSF_IO_PREAD] = { &qsf_io_pread, NULL },
    [QSF_IO_MMAP] = { &qsf_io_mmap, &qsf_io_pread },
};

/* ---- one read ---- */

static uint64_t wanted(const QsfIo *io, const QsfIoRead *r) {
    uint64_t left = io->file[r->file].f->size - r->off;
    return r->len < left ? r->len : left;
}

QsfIoStep qsf_io_step(const QsfIo *io, const QsfIoRead *r) {
    const QsfIoFile *f = &io->file[r->file];
    bool direct = atomic_load_explicit(&f->direct, memory_order_relaxed);
    uint64_t from = direct ? r->got & ~(uint64_t)(QSF_IO_WINDOW - 1) : r->got;
    return (QsfIoStep){ .fd = direct ? f->direct_fd : f->f->fd,
                        .off = r->off + from,
                        .len = (direct ? r->len : wanted(io, r)) - from,
                        .dst = r->dst + from };
}

static bool finish(QsfIoRead *r, int error) {
    r->error = error;
    r->ns = qsf_now_ns() - r->start_ns;
    return true;
}

bool qsf_io_take(QsfIo *io, QsfIoRead *r, const QsfIoStep *s, int64_t result) {
    QsfIoFile *f = &io->file[r->file];
    uint64_t want = wanted(io, r), from = s->off - r->off;
    if (result == -EINTR || result == -EAGAIN) return false;
    bool direct = atomic_load_explicit(&f->direct, memory_order_relaxed);
    if (direct && (result == -EINVAL || result == -EOPNOTSUPP)) { /* the device is stricter: retry without
                                                                     O_DIRECT */
        atomic_store_explicit(&f->direct, false, memory_order_relaxed);
        return false;
    }
    int64_t n = qsf_file_filter(f->f, s->off, s->len, result);
    if (n < 0) return finish(r, (int)-n);
    uint64_t got = from + (uint64_t)n < want ? from + (uint64_t)n : want;
    bool grew = got > r->got;
    if (grew) r->got = got;
    if (r->got == want) {
        if (io->drop && !direct) qsf_os_advise(f->f->fd, r->off, r->len, QSF_ADVICE_DONT_NEED);
        return finish(r, 0);
    }
    return grew ? false : finish(r, 0); /* the file got shorter: the wait reports it */
}

void qsf_io_compute(QsfIo *io, QsfIoRead *r) {
    QsfErr err = { 0 };
    const uint64_t n = wanted(io, r);
    const bool ok = qsf_source_virtual_read(io->o.src, r->off, n, r->dst, &err) == QSF_OK;
    if (ok) r->got = n;
    if (ok && (io->drop || io->computed_once))
        qsf_source_virtual_advise(io->o.src, r->off, n, QSF_ADVICE_DONT_NEED);
    finish(r, ok ? 0 : EIO);
}

static const QsfIoBackend *backend_of(const QsfIo *io, const QsfIoRead *r) {
    return io->file[r->file].computed ? &qsf_io_computed : io->be;
}

void qsf_io_start(QsfIo *io, QsfIoRead *r) {
    r->got = 0;
    r->error = 0;
    r->ns = 0;
    r->start_ns = qsf_now_ns();
    r->busy = true;
    if (io->file[r->file].computed)
        qsf_source_virtual_advise(io->o.src, r->off, wanted(io, r), QSF_ADVICE_WILL_NEED);
    backend_of(io, r)->start(io, r);
}

bool qsf_io_done(QsfIo *io, QsfIoRead *r) { return backend_of(io, r)->done(io, r); }

int qsf_io_wait(QsfIo *io, QsfIoRead *r, QsfErr *err) {
    backend_of(io, r)->wait(io, r);
    const QsfFile *f = io->file[r->file].f;
    /* Once more, for the message, which names the real file. */
    if (r->error != 0 && io->file[r->file].computed)
        return qsf_source_virtual_read(io->o.src, r->off, wanted(io, r), r->dst, err);
    if (r->error != 0) return qsf_file_read_error(f, r->off + r->got, -r->error, err);
    return r->got == wanted(io, r) ? QSF_OK : qsf_file_read_error(f, r->off + r->got, 0, err);
}

/* ---- choosing ---- */

const char *qsf_io_name(const QsfIo *io) { return io->name; }
const char *qsf_io_notice(const QsfIo *io) { return io->notice; }

static void add_notice(QsfIo *io, const char *what, const char *why) {
    size_t at = strlen(io->notice);
    (void)snprintf(io->notice + at, sizeof io->notice - at, "%s%s: %s", at > 0 ? "; " : "", what, why);
}

/* Opens a file with O_DIRECT and tries to read one window. */
static bool open_direct(QsfIo *io, QsfIoFile *f, uint8_t *window) {
    f->direct_fd = qsf_file_open_direct(f->f);
    ssize_t n = f->direct_fd < 0 ? -1 : pread(f->direct_fd, window, QSF_IO_WINDOW, 0);
    atomic_store(&f->direct, n >= 0);
    if (n < 0) {
        const int why = errno;
        char what[64];
        (void)snprintf(what, sizeof what, "%s is not available", qsf_os_direct_name());
        add_notice(io, what, strerror(why));
    }
    return n >= 0;
}

static bool choose_direct(QsfIo *io, bool *cached) {
    const QsfIoOptions *o = &io->o;
    *cached = o->config.direct != QSF_DIRECT_ON && qsf_io_cached_share(o->src) >= CACHED_ENOUGH;
    if (o->config.direct != QSF_DIRECT_AUTO) return o->config.direct == QSF_DIRECT_ON;
    return !*cached && !o->config.keep_cached;
}

static int open_files(QsfIo *io, QsfErr *err) {
    bool cached = false, direct = io->o.config.kind != QSF_IO_MMAP && choose_direct(io, &cached);
    const QsfFile *computed = qsf_source_virtual_file(io->o.src);
    const uint32_t real = qsf_source_n_files(io->o.src);
    io->n_files = real + (computed != NULL);
    io->file = calloc(io->n_files, sizeof *io->file);
    uint8_t *window = aligned_alloc(QSF_IO_WINDOW, QSF_IO_WINDOW);
    for (uint32_t i = 0; io->file != NULL && i < io->n_files; i++) {
        io->file[i].computed = i == real;
        io->file[i].f = i == real ? computed : qsf_source_file(io->o.src, i);
        io->file[i].direct_fd = -1;
    }
    bool ok = io->file != NULL && window != NULL;
    for (uint32_t i = 0; ok && direct && i < real; i++) direct = open_direct(io, &io->file[i], window);
    free(window);
    if (!ok) return qsf_err_memory(err, "I/O");
    io->computed_once = direct;
    if (direct || io->o.config.kind == QSF_IO_MMAP) return QSF_OK;
    /* Do not empty a page cache that existed before, or one that fits into free memory and serves the next
     * pass. */
    io->drop = !cached && !io->o.config.keep_cached && qsf_available_bytes() < qsf_source_bytes(io->o.src);
    return QSF_OK;
}

const char qsf_io_no_memory[] = "out of memory";

static int not_opened(const QsfIo *io, const char *why, QsfErr *err) {
    const char *path = qsf_source_path(io->o.src);
    if (why == qsf_io_no_memory) return qsf_err_memory(err, "reading %s", path);
    return qsf_err_set(err, QSF_E_RUNTIME, "cannot start reading %s: %s", path, why);
}

static int open_computed(QsfIo *io, QsfErr *err) {
    const char *why = "";
    if (qsf_source_virtual_file(io->o.src) == NULL || qsf_io_computed.open(io, &why) == QSF_OK) return QSF_OK;
    return not_opened(io, why, err);
}

static int open_backend(QsfIo *io, QsfErr *err) {
    const char *why = "";
    for (int i = 0; i < N_BACKENDS && choices[io->o.config.kind][i] != NULL; i++) {
        io->be = choices[io->o.config.kind][i];
        why = "";
        if (io->be->open(io, &why) == QSF_OK) return open_computed(io, err);
        if (io->o.config.kind != QSF_IO_AUTO || strcmp(why, "not built in") != 0)
            add_notice(io, io->be->name, why);
    }
    io->be = NULL;
    return not_opened(io, why, err);
}

int qsf_io_create(QsfIo **out, const QsfIoOptions *o, QsfErr *err) {
    *out = NULL;
    QsfIo *io = calloc(1, sizeof *io);
    if (io == NULL) return qsf_err_memory(err, "I/O");
    io->o = *o;
    if ((unsigned)io->o.config.kind >= QSF_IO_N) io->o.config.kind = QSF_IO_AUTO;
    int rc = open_files(io, err);
    if (rc == QSF_OK) rc = open_backend(io, err);
    if (rc != QSF_OK) {
        qsf_io_destroy(io);
        return rc;
    }
    bool direct = io->n_files > 0 && atomic_load(&io->file[0].direct);
    if (io->be->kind == QSF_IO_MMAP)
        (void)snprintf(io->name, sizeof io->name, "%s", io->be->name);
    else
        (void)snprintf(io->name, sizeof io->name, "%s, %s", io->be->name, direct ? "direct" : "buffered");
    *out = io;
    return QSF_OK;
}

void qsf_io_destroy(QsfIo *io) {
    if (io == NULL) return;
    if (io->be != NULL) io->be->close(io);
    if (io->threads != NULL) qsf_io_computed.close(io);
    for (uint32_t i = 0; io->file != NULL && i < io->n_files; i++) {
        if (io->file[i].direct_fd >= 0) close(io->file[i].direct_fd);
    }
    free(io->file);
    free(io);
}
