/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Characters of texts, and characters that stand for bytes. */
#include "src/token/chars.h"

#include <string.h>

#include "src/base/unicode.h"
#include "src/base/utf8.h"

/* ---- classes ---- */

size_t qsf_char_at(const char *s, size_t len, uint32_t *cp) { return qsf_utf8_next(s, len, cp); }

size_t qsf_char_before(const char *s, size_t end, uint32_t *cp) {
    for (size_t n = end < 4 ? end : 4; n > 1; n--)
        if (qsf_utf8_next(s + end - n, n, cp) == n) return n;
    return qsf_utf8_next(s + end - 1, 1, cp);
}

bool qsf_char_is_space(uint32_t cp) {
    if (cp < 0x80) return cp == ' ' || (cp >= '\t' && cp <= '\r');
    return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 ||
           cp == 0x2029 || cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

/* Symbols with the property Other_Alphabetic: circled, squared and parenthesized Latin letters. */
static bool is_letter_symbol(uint32_t cp) {
    return (cp >= 0x24B6 && cp <= 0x24E9) || (cp >= 0x1F130 && cp <= 0x1F149) ||
           (cp >= 0x1F150 && cp <= 0x1F169) || (cp >= 0x1F170 && cp <= 0x1F189);
}

bool qsf_char_is_word(uint32_t cp) {
    if (cp < 0x80) return (cp | 32) - 'a' < 26u || cp - '0' < 10u || cp == '_';
    if (cp > 0x10FFFF) return false;
    const char *c = qsf_unicode_category(cp);
    return *c == 'L' || *c == 'M' || strcmp(c, "Nd") == 0 || strcmp(c, "Nl") == 0 || strcmp(c, "Pc") == 0 ||
           cp == 0x200C || cp == 0x200D || is_letter_symbol(cp);
}

/* ---- bytes as characters ---- */

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
