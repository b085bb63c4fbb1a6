/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages over several lines between """ and """. Pure functions and a small collector. */
#ifndef QSF_UI_QUOTED_H
#define QSF_UI_QUOTED_H

#include "ui/buf.h"

/* Skips a byte order mark of UTF-8. */
void ui_quoted_skip_mark(const char **text, size_t *len);
/* Whether text begins a """ block that it does not end. */
bool ui_quoted_open(const char *text, size_t len);
/* Removes the quotes of a complete block, and one newline next to each. */
void ui_quoted_strip(const char **text, size_t *len);

/* Collects lines into messages. */
typedef struct UiLines {
    UiBuf text;
    bool inside; /* a block is open */
} UiLines;

/* Adds one line without its newline. true: text holds a complete message (still with quotes, may be empty),
 * which the next call discards. */
bool ui_lines_feed(UiLines *l, const char *line, size_t len);
/* The input ended: true if an unfinished block holds a message. */
bool ui_lines_end(UiLines *l);

#endif
