/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sequential reader of a descriptor. */
#include "src/file/qsf/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/crc32.h"

#define BUF_BYTES ((size_t)1 << 18)

int qsf_stream_open(QsfStream *s, QsfErr *err) {
    s->buf = malloc(BUF_BYTES);
    return s->buf != NULL ? QSF_OK : qsf_err_memory(err, "%s", s->path);
}

void qsf_stream_close(QsfStream *s) { free(s->buf); }

int qsf_stream_fill(QsfStream *s, bool *end, QsfErr *err) {
    *end = false;
    while (s->at == s->have) {
        if (s->fd < 0) {
            *end = true;
            return QSF_OK;
        }
        ssize_t n = read(s->fd, s->buf, BUF_BYTES);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return qsf_err_set(err, QSF_E_RUNTIME, "%s: read error at byte offset %" PRIu64 ": %s", s->path,
                               s->pos, strerror(errno));
        *end = n == 0;
        s->at = 0;
        s->have = (size_t)n;
        if (*end) return QSF_OK;
    }
    return QSF_OK;
}

int qsf_stream_some(QsfStream *s, uint64_t most, const char *what, const unsigned char **p, size_t *n,
                    QsfErr *err) {
    bool end;
    int rc = qsf_stream_fill(s, &end, err);
    if (rc == QSF_OK && end)
        rc = qsf_err_set(err, QSF_E_MODEL,
                         "%s: truncated: ends at byte offset %" PRIu64 ", where %" PRIu64
                         " more bytes are needed (%s)",
                         s->path, s->pos, most, what);
    if (rc != QSF_OK) return rc;
    *p = s->buf + s->at;
    *n = s->have - s->at < most ? s->have - s->at : (size_t)most;
    s->crc = qsf_crc32(s->crc, *p, *n);
    s->at += *n;
    s->pos += *n;
    return QSF_OK;
}

int qsf_stream_take(QsfStream *s, unsigned char *dst, uint64_t len, const char *what, QsfErr *err) {
    const unsigned char *p;
    size_t n;
    int rc = QSF_OK;
    for (; rc == QSF_OK && len > 0; len -= n) {
        rc = qsf_stream_some(s, len, what, &p, &n, err);
        if (rc != QSF_OK) break;
        memcpy(dst, p, n);
        dst += n;
    }
    return rc;
}

int qsf_stream_skip(QsfStream *s, uint64_t len, const char *what, QsfErr *err) {
    const unsigned char *p;
    size_t n = 0;
    int rc = QSF_OK;
    for (; rc == QSF_OK && len > 0; len -= rc == QSF_OK ? n : 0)
        rc = qsf_stream_some(s, len, what, &p, &n, err);
    return rc;
}

/* Counts the leading zero bytes of p (n). */
static size_t leading_zeros(const unsigned char *p, size_t n) {
    if (n > 0 && p[0] == 0 && memcmp(p, p + 1, n - 1) == 0) return n; /* each byte equals the one before */
    size_t i = 0;
    while (i < n && p[i] == 0) i++;
    return i;
}

int qsf_stream_zeros(QsfStream *s, uint64_t len, QsfErr *err) {
    const unsigned char *p;
    size_t n = 0;
    int rc = QSF_OK;
    for (; rc == QSF_OK && len > 0; len -= n) {
        rc = qsf_stream_some(s, len, "room between sections", &p, &n, err);
        if (rc != QSF_OK) break;
        const size_t zeros = leading_zeros(p, n);
        if (zeros < n)
            rc = qsf_err_set(err, QSF_E_MODEL,
                             "%s: the byte at byte offset %" PRIu64 " between two pieces is not 0", s->path,
                             s->pos - n + zeros);
    }
    return rc;
}
