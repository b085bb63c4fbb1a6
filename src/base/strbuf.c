/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Growable byte buffer. */
#include "src/base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/plural.h"
#include "src/base/utf8.h"

/* Ensures space for extra more bytes and the NUL. */
static bool grow(QsfStrbuf *b, size_t extra) {
    if (b->failed) return false;
    if (extra > SIZE_MAX / 2 - 1 - b->len) {
        b->failed = true;
        return false;
    }
    size_t need = b->len + extra + 1;
    if (need <= b->cap) return true;
    size_t cap = b->cap < 64 ? 64 : b->cap * 2;
    if (cap < need) cap = need;
    char *data = realloc(b->data, cap);
    if (data == NULL) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->cap = cap;
    return true;
}

void qsf_strbuf_add(QsfStrbuf *b, const void *bytes, size_t len) {
    if (!grow(b, len)) return;
    if (len > 0) memcpy(b->data + b->len, bytes, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void qsf_strbuf_adds(QsfStrbuf *b, const char *s) { qsf_strbuf_add(b, s, strlen(s)); }

void qsf_strbuf_addc(QsfStrbuf *b, char c) { qsf_strbuf_add(b, &c, 1); }

void qsf_strbuf_addf(QsfStrbuf *b, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = qsf_plural_vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) {
        b->failed = true;
    } else if (grow(b, (size_t)n)) {
        qsf_plural_vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void qsf_strbuf_add_utf8(QsfStrbuf *b, uint32_t cp) {
    char out[4];
    size_t n = qsf_utf8_put(cp > 0x10FFFF ? 0xFFFD : cp, out);
    qsf_strbuf_add(b, out, n);
}

bool qsf_strbuf_ok(const QsfStrbuf *b) { return !b->failed; }

bool qsf_strbuf_is(const QsfStrbuf *b, const char *s) {
    size_t n = strlen(s);
    return b->len == n && (n == 0 || memcmp(b->data, s, n) == 0);
}

const char *qsf_strbuf_str(const QsfStrbuf *b) { return b->data == NULL ? "" : b->data; }

char *qsf_strbuf_take(QsfStrbuf *b, size_t *len) {
    if (!grow(b, 0)) {
        qsf_strbuf_free(b);
        return NULL;
    }
    b->data[b->len] = '\0';
    char *data = b->data;
    if (len != NULL) *len = b->len;
    *b = (QsfStrbuf)QSF_STRBUF_INIT;
    return data;
}

void qsf_strbuf_clear(QsfStrbuf *b) {
    b->len = 0;
    b->failed = false;
    if (b->data != NULL) b->data[0] = '\0';
}

void qsf_strbuf_free(QsfStrbuf *b) {
    free(b->data);
    *b = (QsfStrbuf)QSF_STRBUF_INIT;
}
