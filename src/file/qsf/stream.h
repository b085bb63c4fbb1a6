/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sequential reader of a file, pipe or block of memory with a running checksum, for the verifier. Every error
 * names the byte offset: QSF_E_RUNTIME if it cannot be read, QSF_E_MODEL if it ends too early. One thread. */
#ifndef QSF_FILE_QSF_STREAM_H
#define QSF_FILE_QSF_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"

typedef struct QsfStream {
    int fd;             /* owned by the caller; -1: buf is the whole input, and owned by the caller too */
    const char *path;   /* for messages */
    unsigned char *buf; /* (have), the next byte at `at` */
    size_t have, at;
    uint64_t pos; /* of that byte, from the initial position of fd */
    uint32_t crc; /* of all bytes since the caller set it to 0 */
} QsfStream;

/* Opens s, in which fd and path are set and the rest is zero. QSF_E_RUNTIME if out of memory. */
int qsf_stream_open(QsfStream *s, QsfErr *err);
void qsf_stream_close(QsfStream *s);

/* Makes at least one byte available, or sets *end at the end of the input. */
int qsf_stream_fill(QsfStream *s, bool *end, QsfErr *err);
/* Reads 1 to `most` bytes in place: *n of them at *p, valid until the next call. */
int qsf_stream_some(QsfStream *s, uint64_t most, const char *what, const unsigned char **p, size_t *n,
                    QsfErr *err);
/* Reads len bytes to dst. */
int qsf_stream_take(QsfStream *s, unsigned char *dst, uint64_t len, const char *what, QsfErr *err);
int qsf_stream_skip(QsfStream *s, uint64_t len, const char *what, QsfErr *err);
/* Skips len bytes; QSF_E_MODEL if any is not 0. */
int qsf_stream_zeros(QsfStream *s, uint64_t len, QsfErr *err);

#endif
