/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Word wrap by terminal cells. Text is cleaned UTF-8 (ui/transcript.h). Pure functions. */
#ifndef QSF_UI_WRAP_H
#define QSF_UI_WRAP_H

#include <stddef.h>

#define UI_TAB 8

/* One screen line of a text: the bytes s[off..off+len), shown after indent empty cells. */
typedef struct UiLine {
    size_t off;
    unsigned len;
    unsigned indent;
} UiLine;

/* Length of the next thing to draw at column col and the cells it needs there (a tab extends to the next
 * multiple of UI_TAB). 0 if len is 0. */
size_t ui_wrap_step(const char *s, size_t len, int col, int *cells);

/* Finds the screen line that begins at s[off] when lines are width cells wide. Breaks at '\n', otherwise
 * after the last blank that fits, otherwise between two graphemes. indent: that of this line, from the
 * previous call (0 at the start of a paragraph). Returns where the next line begins; *next_indent is its
 * indent: a list item or an indented line hangs. len itself is returned at the end of the text. */
size_t ui_wrap_next(const char *s, size_t len, size_t off, unsigned indent, int width, UiLine *line,
                    unsigned *next_indent);

#endif
