/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Byte <-> character of byte-level BPE, by arithmetic: the bytes without a printable form are
 * 00-20, 7F-A0 and AD, numbered in this order from U+0100. */
#include "src/token/bytemap.h"

#include "src/base/utf8.h"

enum { FIRST = 0x100, N_LOW = 0x21, N_MID = 0xA1 - 0x7F, END = FIRST + N_LOW + N_MID + 1 };

uint32_t qsf_bytemap_cp(unsigned char byte) {
    if (byte < N_LOW) return FIRST + byte;
    if (byte >= 0x7F && byte <= 0xA0) return FIRST + N_LOW + (byte - 0x7Fu);
    if (byte == 0xAD) return END - 1;
    return byte;
}

/* The byte of a code point, or -1. */
static int byte_of(uint32_t cp) {
    if (cp >= END) return -1;
    if (cp == END - 1) return 0xAD;
    if (cp >= FIRST + N_LOW) return (int)(cp - FIRST - N_LOW + 0x7F);
    if (cp >= FIRST) return (int)(cp - FIRST);
    return qsf_bytemap_cp((unsigned char)cp) == cp ? (int)cp : -1;
}

size_t qsf_bytemap_encode(const char *src, size_t len, char *dst) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        uint32_t cp = qsf_bytemap_cp((unsigned char)src[i]);
        if (cp < 0x80) {
            dst[n++] = (char)cp;
        } else {
            dst[n++] = (char)(0xC0 | cp >> 6);
            dst[n++] = (char)(0x80 | (cp & 0x3F));
        }
    }
    return n;
}

size_t qsf_bytemap_decode(const char *src, size_t len, char *dst, size_t cap) {
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        size_t step = qsf_utf8_next(src + i, len - i, &cp);
        int byte = byte_of(cp);
        if (byte >= 0) {
            if (n < cap) dst[n] = (char)byte;
            n++;
        } else {
            for (size_t k = 0; k < step; k++, n++) {
                if (n < cap) dst[n] = src[i + k];
            }
        }
        i += step;
    }
    return n;
}
