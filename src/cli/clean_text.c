/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Widths and cleaning of text for terminals: implements qsf_text.h. Keeps state across calls, because a
 * model's bytes arrive in pieces that may end inside a character. */
#include "qsf_text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/err.h"
#include "src/base/plural.h"
#include "src/base/unicode.h"
#include "src/base/utf8.h"

size_t qsf_text_grapheme(const char *s, size_t len, int *cells) { return qsf_grapheme_next(s, len, cells); }

size_t qsf_text_width(const char *s, size_t len) { return qsf_text_cells(s, len); }

/* Writes the visible form of a code point that must not pass raw, at most 10 bytes; returns 0 when it may
 * pass. */
static size_t mark_of(uint32_t cp, char *dst) {
    if (cp < 0x20 && cp != '\n' && cp != '\t') {
        dst[0] = '^';
        dst[1] = (char)(cp + 0x40);
        return 2;
    }
    if (cp == 0x7F) return (size_t)sprintf(dst, "^?");
    if (cp >= 0x80 && cp < 0xA0) return (size_t)sprintf(dst, "\\x%02x", (unsigned)cp);
    if (qsf_utf8_is_hidden(cp)) return (size_t)sprintf(dst, "<U+%04X>", (unsigned)cp);
    return 0;
}

/* The flags of England, Scotland and Wales are a black flag and letters of tags, which elsewhere may hide a
 * text. Does cp continue one? */
static bool continues_flag(QSFClean *c, uint32_t cp) {
    static const char tags[3][7] = { "gbeng\x7f", "gbsct\x7f", "gbwls\x7f" };
    const unsigned at = c->flag;
    c->flag = cp == 0x1F3F4 && !c->ascii ? 1 : 0;
    if (at == 0 || cp < 0xE0000) return false;
    if (at == 1) c->flag_of = 7;
    for (unsigned i = 0; i < 3; i++)
        if (cp != 0xE0000u + (unsigned char)tags[i][at - 1]) c->flag_of &= ~(1u << i);
    if (c->flag_of != 0 && at < 6) c->flag = at + 1;
    return c->flag_of != 0;
}

/* Puts one decoded unit (n bytes at s, cp 0xFFFFFFFF = ill-formed byte) into dst; flag: a part of one. */
static size_t put_clean(const QSFClean *c, const char *s, size_t n, uint32_t cp, bool flag, char *dst) {
    if (cp == 0xFFFFFFFFu) return (size_t)sprintf(dst, "\\x%02x", (unsigned)(unsigned char)s[0]);
    size_t m = flag ? 0 : mark_of(cp, dst);
    if (m) return m;
    if (c->ascii && cp >= 0x80) {
        *dst = '?';
        return 1;
    }
    memcpy(dst, s, n);
    return n;
}

/* A CR is dropped before LF and shown as ^M anywhere else. */
static size_t put_unit(QSFClean *c, const char *s, size_t n, uint32_t cp, char *dst) {
    const bool flag = continues_flag(c, cp);
    size_t out = 0;
    if (c->cr) {
        c->cr = false;
        if (cp != '\n') out = (size_t)sprintf(dst, "^M");
    }
    if (cp == '\r') {
        c->cr = true;
        return out;
    }
    return out + put_clean(c, s, n, cp, flag, dst + out);
}

/* Cleans the whole units of s[0..len); returns the bytes used up. An incomplete tail stays unless end. */
static size_t clean_run(QSFClean *c, const char *s, size_t len, bool end, char *dst, size_t *out) {
    size_t keep = end ? 0 : qsf_utf8_incomplete_tail(s, len);
    size_t i = 0;
    while (i < len - keep) {
        uint32_t cp;
        size_t n = qsf_utf8_next(s + i, len - i, &cp);
        *out += put_unit(c, s + i, n, cp, dst + *out);
        i += n;
    }
    return i;
}

size_t qsf_clean(QSFClean *c, const char *s, size_t len, bool end, char *dst) {
    size_t out = 0, pos = 0;
    while (c->n_tail && pos < len) { /* finish the held-back sequence byte by byte */
        char joined[8];
        memcpy(joined, c->tail, c->n_tail);
        size_t n = c->n_tail;
        joined[n++] = s[pos++];
        c->n_tail = 0;
        size_t used = clean_run(c, joined, n, false, dst, &out);
        c->n_tail = (unsigned)(n - used);
        memmove(c->tail, joined + used, n - used);
    }
    if (pos < len) {
        size_t used = clean_run(c, s + pos, len - pos, false, dst, &out);
        c->n_tail = (unsigned)(len - pos - used);
        memcpy(c->tail, s + pos + used, c->n_tail);
    }
    if (!end) return out;
    char tail[4];
    unsigned n = c->n_tail;
    memcpy(tail, c->tail, n);
    c->n_tail = 0;
    clean_run(c, tail, n, true, dst, &out);
    if (c->cr) out += (size_t)sprintf(dst + out, "^M");
    c->cr = false;
    return out;
}

char *qsf_clean_dup(const char *s, size_t len, bool one_line) {
    if (len > SIZE_MAX / 16) return NULL;
    char *dst = malloc(QSF_CLEAN_MAX(len) + 1);
    if (!dst) return NULL;
    QSFClean c = { 0 };
    size_t n = qsf_clean(&c, s, len, true, dst);
    dst[n] = '\0';
    if (one_line)
        for (size_t i = 0; i < n; i++)
            if (dst[i] == '\n' || dst[i] == '\t') dst[i] = ' ';
    char *fit = realloc(dst, n + 1); /* the bound is ten times too large for ordinary text */
    return fit ? fit : dst;
}

int qsf_text_vsnprintf(char *dst, size_t cap, const char *fmt, va_list ap) {
    return qsf_plural_vsnprintf(dst, cap, fmt, ap);
}

int qsf_text_snprintf(char *dst, size_t cap, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const int n = qsf_plural_vsnprintf(dst, cap, fmt, ap);
    va_end(ap);
    return n;
}

int qsf_text_fprintf(FILE *to, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const int n = qsf_plural_vfprintf(to, fmt, ap);
    va_end(ap);
    return n;
}

size_t qsf_text_vformat(char *dst, size_t cap, const char *fmt, va_list ap) {
    char line, *text = malloc(cap);
    const int n = text != NULL && cap > 0 ? qsf_lines_format(text, cap, fmt, ap, &line) : -1;
    size_t out = 0;
    for (size_t i = 0; n >= 0 && text[i] != '\0' && out + 2 < cap; i++) {
        const bool mark = text[i] == '\n';
        if (mark) dst[out++] = '^';
        dst[out++] = mark ? 'J' : line != 0 && text[i] == line ? '\n' : text[i];
    }
    if (cap > 0) dst[out] = '\0';
    free(text);
    return out;
}
