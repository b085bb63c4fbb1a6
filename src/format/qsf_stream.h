/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A file, pipe or piece of memory read once, front to back, with a running checksum: for the verifier. Every failure names the
 * byte offset: QSF_E_RUNTIME when it cannot be read, QSF_E_MODEL when it ends too early. One thread. */
#ifndef QSF_FORMAT_QSF_STREAM_H
#define QSF_FORMAT_QSF_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"

typedef struct QsfStream {
    int fd;             /* the caller's; -1: buf is all there is, and the caller's too */
    const char *path;   /* what messages call it */
    unsigned char *buf; /* (have), the next byte at `at` */
    size_t have, at;
    uint64_t pos; /* of that byte, from where fd stood */
    uint32_t crc; /* of all since the caller set it to 0 */
} QsfStream;

/* fd and path are filled, the rest is zero. QSF_E_RUNTIME without memory. */
int qsf_stream_open(QsfStream *s, QsfErr *err);
void qsf_stream_close(QsfStream *s);

/* Makes at least one byte available; *end: there is none. */
int qsf_stream_fill(QsfStream *s, bool *end, QsfErr *err);
/* At least one and at most `most` bytes, in place: *n of them at *p, valid until the next call. */
int qsf_stream_some(QsfStream *s, uint64_t most, const char *what, const unsigned char **p, size_t *n,
                    QsfErr *err);
/* Copies len bytes. */
int qsf_stream_take(QsfStream *s, unsigned char *dst, uint64_t len, const char *what, QsfErr *err);
int qsf_stream_skip(QsfStream *s, uint64_t len, const char *what, QsfErr *err);
/* Skips len bytes that must be 0: QSF_E_MODEL. */
int qsf_stream_zeros(QsfStream *s, uint64_t len, QsfErr *err);

#endif
