/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Characters and ends of ASCII text, independent of the locale. */
#ifndef QSF_BASE_ASCII_H
#define QSF_BASE_ASCII_H

#include <stdbool.h>
#include <string.h>

/* Returns the value of a hexadecimal digit in either case, -1 for any other character. */
static inline int qsf_hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}
/* Does s end with `end`? Both are NUL-terminated. */
static inline bool qsf_ends_with(const char *s, const char *end) {
    const size_t n = strlen(s), k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

/* Does text[0..len) begin with the NUL-terminated `with`? */
static inline bool qsf_begins_with(const char *text, size_t len, const char *with) {
    return strlen(with) <= len && memcmp(text, with, strlen(with)) == 0;
}

#endif
