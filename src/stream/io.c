/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads at the moment they are started. */
#include "src/stream/io.h"

#include <stdlib.h>

struct QsfIo {
    const QsfSource *src;
};

int qsf_io_create(QsfIo **out, const QsfIoOptions *o, QsfErr *err) {
    *out = calloc(1, sizeof **out);
    if (*out == NULL) return qsf_err_set(err, QSF_E_RUNTIME, "out of memory: I/O");
    (*out)->src = o->src;
    return QSF_OK;
}

void qsf_io_destroy(QsfIo *io) { free(io); }

void qsf_io_start(QsfIo *io, QsfIoRead *r) {
    (void)io;
    r->busy = true;
}

bool qsf_io_poll(QsfIo *io, QsfIoRead *r) {
    (void)io;
    return !r->busy;
}

int qsf_io_wait(QsfIo *io, QsfIoRead *r, QsfErr *err) {
    const QsfFile *f = qsf_source_file(io->src, r->file);
    uint64_t n = r->off + r->len < f->size ? r->len : f->size - r->off;
    int rc = qsf_file_pread(f, r->dst, (size_t)n, r->off, err);
    r->busy = false;
    r->got = rc == QSF_OK ? n : 0;
    return rc;
}

const char *qsf_io_name(const QsfIo *io) {
    (void)io;
    return "pread, buffered";
}

const char *qsf_io_notice(const QsfIo *io) {
    (void)io;
    return "";
}
