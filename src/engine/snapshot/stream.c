/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads and writes the file of a snapshot in order, with checksums. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "src/base/crc32.h"
#include "src/engine/snapshot/file.h"

void qsf_snap_stream(QsfSnapStream *s, int fd, uint64_t at, uint64_t limit, uint8_t *buf, size_t cap) {
    *s = (QsfSnapStream){ .fd = fd, .at = at, .limit = limit, .buf = buf, .cap = cap };
}

static bool fail(QsfSnapStream *s, int why) {
    s->failed = true;
    s->why = why;
    return false;
}

static bool refill(QsfSnapStream *s) {
    s->at += s->len;
    const uint64_t left = s->limit > s->at ? s->limit - s->at : 0;
    const size_t want = left < s->cap ? (size_t)left : s->cap;
    ssize_t n = 0;
    if (want > 0) do
            n = pread(s->fd, s->buf, want, (off_t)s->at);
        while (n < 0 && errno == EINTR);
    s->pos = 0;
    s->len = n > 0 ? (size_t)n : 0;
    return n > 0 || fail(s, n < 0 ? errno : 0);
}

bool qsf_snap_read(QsfSnapStream *s, void *dst, size_t n) {
    uint8_t *to = dst;
    while (n > 0 && !s->failed) {
        if (s->pos == s->len && !refill(s)) return false;
        const size_t part = s->len - s->pos < n ? s->len - s->pos : n;
        memcpy(to, s->buf + s->pos, part);
        s->crc = qsf_crc32(s->crc, to, part);
        s->pos += part;
        to += part;
        n -= part;
    }
    return !s->failed;
}

bool qsf_snap_flush(QsfSnapStream *s) {
    for (size_t done = 0; done < s->pos && !s->failed;) {
        const ssize_t n = pwrite(s->fd, s->buf + done, s->pos - done, (off_t)s->at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fail(s, n < 0 ? errno : EIO);
        done += (size_t)n;
        s->at += (uint64_t)n;
    }
    s->pos = 0;
    return !s->failed;
}

bool qsf_snap_write(QsfSnapStream *s, const void *src, size_t n) {
    const uint8_t *from = src;
    while (n > 0 && !s->failed) {
        if (s->pos == s->cap && !qsf_snap_flush(s)) return false;
        const size_t part = s->cap - s->pos < n ? s->cap - s->pos : n;
        memcpy(s->buf + s->pos, from, part);
        s->crc = qsf_crc32(s->crc, from, part);
        s->pos += part;
        from += part;
        n -= part;
    }
    return !s->failed;
}

bool qsf_snap_read_u32(QsfSnapStream *s, uint32_t *v, size_t n) {
    uint8_t b[4];
    for (size_t i = 0; i < n; i++) {
        if (!qsf_snap_read(s, b, sizeof b)) return false;
        v[i] = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    }
    return true;
}

bool qsf_snap_write_u32(QsfSnapStream *s, const uint32_t *v, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const uint8_t b[4] = { (uint8_t)v[i], (uint8_t)(v[i] >> 8), (uint8_t)(v[i] >> 16),
                               (uint8_t)(v[i] >> 24) };
        if (!qsf_snap_write(s, b, sizeof b)) return false;
    }
    return true;
}

bool qsf_snap_read_crc(QsfSnapStream *s) {
    const uint32_t is = s->crc;
    uint32_t expected;
    if (!qsf_snap_read_u32(s, &expected, 1)) return false;
    return is == expected || fail(s, 0);
}

bool qsf_snap_write_crc(QsfSnapStream *s) {
    const uint32_t crc = s->crc;
    return qsf_snap_write_u32(s, &crc, 1);
}
