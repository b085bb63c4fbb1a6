/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Growable bytes. */
#include "ui/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_text.h"

#define UI_BUF_KEEP 65536

static bool reserve(UiBuf *b, size_t more) {
    if (more > SIZE_MAX / 2 - b->len - 1) return false;
    size_t need = b->len + more + 1;
    if (need <= b->cap) return true;
    size_t cap = b->cap < 64 ? 64 : b->cap + b->cap / 2;
    if (cap < need) cap = need;
    char *p = realloc(b->data, cap);
    if (!p) return false;
    b->data = p;
    b->cap = cap;
    return true;
}

bool ui_buf_reserve(UiBuf *b, size_t len) {
    if (len < b->cap) return true;
    char *p = len < SIZE_MAX / 2 ? realloc(b->data, len + 1) : NULL;
    if (!p) return false;
    if (!b->data) *p = '\0';
    b->data = p;
    b->cap = len + 1;
    return true;
}

bool ui_buf_add(UiBuf *b, const char *s, size_t len) {
    if (!reserve(b, len)) {
        b->failed = true;
        return false;
    }
    if (len > 0) memcpy(b->data + b->len, s, len);
    b->len += len;
    b->data[b->len] = '\0';
    return true;
}

bool ui_buf_puts(UiBuf *b, const char *s) { return ui_buf_add(b, s, strlen(s)); }

bool ui_buf_printf(UiBuf *b, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = qsf_text_vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    bool ok = n >= 0 && reserve(b, (size_t)n);
    if (ok) {
        (void)qsf_text_vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    } else {
        b->failed = true;
    }
    va_end(again);
    return ok;
}

const char *ui_buf_str(const UiBuf *b) { return b->data ? b->data : ""; }

void ui_buf_clear(UiBuf *b) {
    if (b->cap > UI_BUF_KEEP) {
        ui_buf_free(b);
        return;
    }
    b->len = 0;
    b->failed = false;
    if (b->data) b->data[0] = '\0';
}

void ui_buf_free(UiBuf *b) {
    free(b->data);
    *b = (UiBuf){ 0 };
}

char *ui_strdup_len(const char *s, size_t len) {
    char *p = malloc(len + 1);
    if (!p) return NULL;
    if (len > 0) memcpy(p, s, len);
    p[len] = '\0';
    return p;
}
