/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text for terminals: grapheme widths, and cleaning of bytes that must not reach a terminal raw.
 * Shared by the programs; not installed. Any thread. */
#ifndef QSF_TEXT_H
#define QSF_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Returns the length in bytes of the first grapheme cluster of s[0..len), and its width in terminal cells (0,
 * 1 or 2; ill-formed bytes are clusters of 1 cell). 0 when len is 0. */
size_t qsf_text_grapheme(const char *s, size_t len, int *cells);
/* Returns the width of the whole text in cells. */
size_t qsf_text_width(const char *s, size_t len);

/* Streaming cleaner: \n and \t and printable text pass; other C0, DEL, C1 (raw and as UTF-8), ESC, bidi
 * controls, tag characters (but not those of the flags of England, Scotland and Wales), and ill-formed bytes
 * become visible marks (^[ for ESC, <U+202E>, \x9b). An incomplete sequence at the end is held back until the
 * next call. CR before LF is dropped. With ascii set, every non-ASCII character becomes "?" (for terminals
 * that cannot show UTF-8). */
typedef struct QSFClean {
    char tail[4];
    unsigned n_tail;
    bool cr; /* a CR is held back */
    bool ascii;
    unsigned flag, flag_of; /* 1 + the tags of a flag so far, 0 = none; those that it may become */
} QSFClean;
/* Maximum size of the result of cleaning len bytes. */
#define QSF_CLEAN_MAX(len) (((len) + 8) * 10)
/* Cleans s into dst (at least QSF_CLEAN_MAX(len) bytes) and returns the number of bytes written. end: no more
 * text follows, so what is held back is written too. A zeroed QSFClean is the initial state. */
size_t qsf_clean(QSFClean *c, const char *s, size_t len, bool end, char *dst);
/* Cleans a whole text; the result is malloc'ed and NUL-terminated. With one_line, newlines and tabs become
 * spaces. */
char *qsf_clean_dup(const char *s, size_t len, bool one_line);

/* The functions of stdio.h for messages with counts: a noun after the number 1 is singular, "1 token is" by
 * "%u tokens are". */
int qsf_text_vsnprintf(char *dst, size_t cap, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
int qsf_text_snprintf(char *dst, size_t cap, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int qsf_text_fprintf(FILE *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Formats a message into dst like qsf_text_vsnprintf, but newlines of its arguments (names, text from
 * outside) become ^J: only fmt ends lines. Returns its length; what does not fit is cut. */
size_t qsf_text_vformat(char *dst, size_t cap, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

#endif
