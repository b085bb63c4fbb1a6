/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text for people: grapheme widths, and cleaning of bytes that must not reach a terminal raw.
 * Shared by the programs; not installed. Any thread. */
#ifndef QSF_TEXT_H
#define QSF_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Length in bytes of the first grapheme cluster of s[0..len) and the cells it takes on a terminal
 * (0, 1 or 2; ill-formed bytes are clusters of 1 cell). 0 when len is 0. */
size_t qsf_text_grapheme(const char *s, size_t len, int *cells);
/* Cells of the whole text. */
size_t qsf_text_width(const char *s, size_t len);

/* Streaming cleaner: \n and \t and printable text pass; other C0, DEL, C1 (raw and as UTF-8), ESC, bidi
 * controls, tag characters, and ill-formed bytes become visible marks (^[ for ESC, <U+202E>, \x9b).
 * An incomplete sequence at the end is held back until the next call. CR before LF is dropped. With ascii set
 * every non-ASCII character becomes "?" (a terminal that cannot show UTF-8). */
typedef struct QSFClean {
    char tail[4];
    unsigned n_tail;
    bool cr;      /* a CR is held back */
    bool ascii;
} QSFClean;
/* Most bytes that cleaning len bytes can give. */
#define QSF_CLEAN_MAX(len) (((len) + 8) * 10)
/* Cleans s into dst (at least QSF_CLEAN_MAX(len)); returns the bytes written. end: nothing follows, give
 * out what is held back too. A zeroed QSFClean is a fresh one. */
size_t qsf_clean(QSFClean *c, const char *s, size_t len, bool end, char *dst);
/* One-shot: malloc'ed, NUL-terminated; newlines and tabs become spaces when one_line. */
char *qsf_clean_dup(const char *s, size_t len, bool one_line);

#endif
