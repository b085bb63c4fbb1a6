/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bounded little-endian reader over a window of a file (buffered) or of memory. All headers are read with it,
 * and every error names the file and the byte offset. One thread. */
#ifndef QSF_BASE_CURSOR_H
#define QSF_BASE_CURSOR_H

#include "src/base/file.h"

#define QSF_CURSOR_BUF 65536

typedef struct QsfCursor {
    const QsfFile *file;
    uint64_t pos, end; /* next byte, first byte that may not be read */
    uint64_t buf_off;  /* file offset of buf[0] */
    size_t buf_len;
    unsigned char *buf;       /* QSF_CURSOR_BUF bytes, owned */
    const unsigned char *mem; /* the window itself, borrowed, if it is in memory; else NULL */
} QsfCursor;

/* Opens the window [off, off+len) of f. QSF_E_MODEL if it lies outside the file, QSF_E_RUNTIME if out of
 * memory. */
int qsf_cursor_open(QsfCursor *c, const QsfFile *f, uint64_t off, uint64_t len, QsfErr *err);
/* Opens len bytes of memory, at offset 0, instead; f is the file to name in messages. Never fails. */
void qsf_cursor_memory(QsfCursor *c, const QsfFile *f, const void *mem, uint64_t len);
/* Frees the buffer, not the file. A zeroed cursor is allowed, and a closed one. */
void qsf_cursor_close(QsfCursor *c);

/* Returns the number of bytes left in the window. */
uint64_t qsf_cursor_left(const QsfCursor *c);
/* Copies the next len bytes. QSF_E_MODEL "<path>: truncated: needs N bytes at offset M (what)". */
int qsf_cursor_bytes(QsfCursor *c, void *dst, size_t len, const char *what, QsfErr *err);
/* The same without a copy. */
int qsf_cursor_skip(QsfCursor *c, uint64_t len, const char *what, QsfErr *err);
/* Read a little-endian number. Errors as above. */
int qsf_cursor_u32(QsfCursor *c, uint32_t *out, const char *what, QsfErr *err);
int qsf_cursor_u64(QsfCursor *c, uint64_t *out, const char *what, QsfErr *err);

#endif
