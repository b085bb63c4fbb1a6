/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/base/lines.h"

#include <stdio.h>
#include <string.h>

/* Copies fmt with c instead of newlines. */
static void replace_newlines(char *dst, const char *fmt, char c) {
    do {
        *dst++ = *fmt == '\n' ? c : *fmt;
    } while (*fmt++ != '\0');
}

static size_t count(const char *s, char c) {
    size_t n = 0;
    for (; *s != '\0'; s++) n += *s == c;
    return n;
}

int qsf_lines_format(char *out, size_t cap, const char *fmt, va_list ap, char *line) {
    char lines[QSF_LINES_FORMAT];
    const size_t n = count(fmt, '\n');
    *line = 0;
    if (n == 0 || strlen(fmt) >= sizeof lines) return vsnprintf(out, cap, fmt, ap);
    int len = -1;
    for (char c = 1; c < '\t'; c++) { /* almost always the first one */
        va_list again;
        va_copy(again, ap);
        replace_newlines(lines, fmt, c);
        len = vsnprintf(out, cap, lines, again);
        va_end(again);
        *line = c;
        if (len < 0 || count(out, c) <= n) return len;
    }
    *line = 0; /* every one is in an argument: the lines are joined */
    return len;
}
