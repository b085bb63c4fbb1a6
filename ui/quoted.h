/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages over several lines between """ and """. Pure functions and a small collector. */
#ifndef QSF_UI_QUOTED_H
#define QSF_UI_QUOTED_H

#include "ui/text_limit.h"

/* Skips a byte order mark of UTF-8. */
void ui_quoted_skip_mark(const char **text, size_t *len);
/* Whether text, or a system prompt after /system or /set system, begins a """ block that it does not end. */
bool ui_quoted_open(const char *text, size_t len);
/* Removes the quotes of a complete block, and one newline next to each. */
void ui_quoted_strip(const char **text, size_t *len);

/* Collects lines into messages. Zeroed it is empty. */
typedef struct UiLines {
    UiBuf text;
    UiTextLimit cut; /* of a message that is too long; its limit may be set before one begins */
    bool inside;     /* a block is open */
    bool begun;      /* a line is not complete */
} UiLines;

/* Whether the next line begins a message. */
bool ui_lines_at_start(const UiLines *l);
/* Adds a part of a line, without its newline. */
void ui_lines_add(UiLines *l, const char *part, size_t len);
/* The line is complete; a \r at its end is not a part of it. true: text holds a complete message (still with
 * quotes, may be empty), which the next line discards. Of one that was cut (l->cut.cut), l->cut.size is the
 * size. */
bool ui_lines_end_line(UiLines *l);
/* Both with a whole line. */
bool ui_lines_feed(UiLines *l, const char *line, size_t len);
/* The input ended: true if an unfinished block holds a message. */
bool ui_lines_end(UiLines *l);

#endif
