/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bounded, buffered little-endian reader. */
#include "src/base/cursor.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/checked.h"

int qsf_cursor_open(QsfCursor *c, const QsfFile *f, uint64_t off, uint64_t len, QsfErr *err) {
    *c = (QsfCursor){ .file = f, .pos = off };
    if (!qsf_range_ok(off, len, f->size))
        return qsf_err_set(err, QSF_E_MODEL,
                           "%s: truncated: needs %llu bytes at offset %llu, the file has %llu", f->path,
                           (unsigned long long)len, (unsigned long long)off, (unsigned long long)f->size);
    c->end = off + len;
    c->buf = malloc(QSF_CURSOR_BUF);
    if (c->buf == NULL) return qsf_err_memory(err, "%s", f->path);
    return QSF_OK;
}

void qsf_cursor_memory(QsfCursor *c, const QsfFile *f, const void *mem, uint64_t len) {
    *c = (QsfCursor){ .file = f, .end = len, .mem = mem };
}

void qsf_cursor_close(QsfCursor *c) {
    free(c->buf);
    *c = (QsfCursor){ 0 };
}

uint64_t qsf_cursor_left(const QsfCursor *c) { return c->end - c->pos; }

static int truncated(const QsfCursor *c, uint64_t len, const char *what, QsfErr *err) {
    return qsf_err_set(err, QSF_E_MODEL, "%s: truncated: needs %llu bytes at offset %llu (%s), %llu are left",
                       c->file->path, (unsigned long long)len, (unsigned long long)c->pos, what,
                       (unsigned long long)qsf_cursor_left(c));
}

/* Fills buf with the bytes at pos; at least one must be left in the window. */
static int refill(QsfCursor *c, QsfErr *err) {
    uint64_t left = qsf_cursor_left(c);
    size_t n = left < QSF_CURSOR_BUF ? (size_t)left : QSF_CURSOR_BUF;
    c->buf_len = 0;
    int rc = qsf_file_pread(c->file, c->buf, n, c->pos, err);
    if (rc != QSF_OK) return rc;
    c->buf_off = c->pos;
    c->buf_len = n;
    return QSF_OK;
}

int qsf_cursor_bytes(QsfCursor *c, void *dst, size_t len, const char *what, QsfErr *err) {
    if (len > qsf_cursor_left(c)) return truncated(c, len, what, err);
    unsigned char *p = dst;
    if (c->mem != NULL) {
        if (len > 0) memcpy(p, c->mem + c->pos, len);
        c->pos += len;
        return QSF_OK;
    }
    while (len > 0) {
        uint64_t at = c->pos - c->buf_off;
        bool inside = c->pos >= c->buf_off && at < c->buf_len;
        if (!inside) {
            int rc = len >= QSF_CURSOR_BUF ? qsf_file_pread(c->file, p, len, c->pos, err) : refill(c, err);
            if (rc != QSF_OK) return rc;
            if (len >= QSF_CURSOR_BUF) {
                c->pos += len;
                return QSF_OK;
            }
            at = 0;
        }
        size_t n = c->buf_len - (size_t)at;
        if (n > len) n = len;
        memcpy(p, c->buf + at, n);
        p += n;
        len -= n;
        c->pos += n;
    }
    return QSF_OK;
}

int qsf_cursor_skip(QsfCursor *c, uint64_t len, const char *what, QsfErr *err) {
    if (len > qsf_cursor_left(c)) return truncated(c, len, what, err);
    c->pos += len;
    return QSF_OK;
}

/* Reads n <= 8 bytes as a little-endian number. */
static int read_le(QsfCursor *c, size_t n, uint64_t *out, const char *what, QsfErr *err) {
    unsigned char b[8];
    int rc = qsf_cursor_bytes(c, b, n, what, err);
    if (rc != QSF_OK) return rc;
    uint64_t v = 0;
    for (size_t i = n; i > 0; i--) v = v << 8 | b[i - 1];
    *out = v;
    return QSF_OK;
}

int qsf_cursor_u32(QsfCursor *c, uint32_t *out, const char *what, QsfErr *err) {
    uint64_t v = 0;
    int rc = read_le(c, 4, &v, what, err);
    if (rc == QSF_OK) *out = (uint32_t)v;
    return rc;
}

int qsf_cursor_u64(QsfCursor *c, uint64_t *out, const char *what, QsfErr *err) {
    return read_le(c, 8, out, what, err);
}
