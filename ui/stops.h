/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stop strings: --stop and /stop. One thread. */
#ifndef QSF_UI_STOPS_H
#define QSF_UI_STOPS_H

#include "ui/buf.h"

#define UI_STOPS_MAX 64
#define UI_STOP_LEN  4096 /* maximum bytes of one */

typedef struct UiStops {
    char *text[UI_STOPS_MAX]; /* (n), owned */
    size_t n;
} UiStops;

/* Copies text, unless it is already there. Returns NULL, or why it cannot be added. */
const char *ui_stops_add(UiStops *s, const char *text);
void ui_stops_clear(UiStops *s);
/* Converts a line with \n, \t and \\ to text: malloc'ed, NULL without memory. */
char *ui_stops_unquote(const char *line);
/* Appends all of them, so written, one a line. */
void ui_stops_list(const UiStops *s, UiBuf *out);
/* Replaces all by those of such a list. */
void ui_stops_read(UiStops *s, const char *list);
/* The inverse of ui_stops_unquote. */
void ui_stops_quote(const char *text, UiBuf *out);

#endif
