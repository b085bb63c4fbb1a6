/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Growable byte buffer on the libc heap, always NUL-terminated. Initialize with zeros or QSF_STRBUF_INIT.
 * Allocation failure is sticky: further appends do nothing and qsf_strbuf_ok() is false. */
#ifndef QSF_BASE_STRBUF_H
#define QSF_BASE_STRBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct QsfStrbuf {
    char *data; /* NULL until the first append */
    size_t len, cap;
    bool failed;
} QsfStrbuf;

#define QSF_STRBUF_INIT \
    { 0 }

/* Append len bytes, a C string, one byte, or what printf writes. */
void qsf_strbuf_add(QsfStrbuf *b, const void *bytes, size_t len);
void qsf_strbuf_adds(QsfStrbuf *b, const char *s);
void qsf_strbuf_addc(QsfStrbuf *b, char c);
void qsf_strbuf_addf(QsfStrbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Appends a code point as UTF-8; U+FFFD if it is above 0x10FFFF. Does not check for surrogates. */
void qsf_strbuf_add_utf8(QsfStrbuf *b, uint32_t cp);
/* Was every append since the last clear complete? */
bool qsf_strbuf_ok(const QsfStrbuf *b);
/* Returns whether b contains exactly the string s; false if b contains a NUL. */
bool qsf_strbuf_is(const QsfStrbuf *b, const char *s);
/* Returns the contents, "" if empty; owned by b. */
const char *qsf_strbuf_str(const QsfStrbuf *b);
/* Transfers the bytes to the caller, who frees them, and leaves b empty; NULL if an append failed. */
char *qsf_strbuf_take(QsfStrbuf *b, size_t *len);
/* Empties b and forgets a failure; the memory stays for the next appends. */
void qsf_strbuf_clear(QsfStrbuf *b);
/* Frees the memory; b is empty and can be used again. */
void qsf_strbuf_free(QsfStrbuf *b);

#endif
