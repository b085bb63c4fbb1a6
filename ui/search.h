/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Search in the conversation: where an expression is found, and which of the places is the current one. One
 * thread. */
#ifndef QSF_UI_SEARCH_H
#define QSF_UI_SEARCH_H

#include "qsf_search.h"
#include "ui/canvas.h"
#include "ui/transcript.h"

#define UI_MATCHES_MAX 100000u /* places that are kept; more are not counted */

typedef struct UiMatch {
    uint32_t item; /* id */
    size_t off;    /* in its displayed text */
} UiMatch;

/* Zeroed nothing is searched for. */
typedef struct UiSearch {
    QSFSearch *search;
    UiBuf pattern;
    UiMatch *all; /* (n), from the first message on */
    size_t n, cap, at;
    uint32_t seen; /* state of the transcript when it was searched */
} UiSearch;

/* Starts a search; the current place is the last one. Returns false with a message in err if pattern is not
 * an expression or is found nowhere: the search before it stays. */
bool ui_search_start(UiSearch *s, const UiTranscript *t, const char *pattern, char *err, size_t cap);
/* Searches again if the transcript has changed; the current place stays where it is, if it is still there. */
void ui_search_refresh(UiSearch *s, const UiTranscript *t);
/* The next place (by 1) or the one before it (by -1), round; NULL if there is none. */
const UiMatch *ui_search_step(UiSearch *s, int by);
/* The current place, or NULL. */
const UiMatch *ui_search_at(const UiSearch *s);
/* Appends the lines with a place, each after the number of its message. */
void ui_search_lines(const UiSearch *s, const UiTranscript *t, UiBuf *out);
/* Marks what s finds in n rows of the canvas, as they are drawn, up to column width; NULL finds nothing. */
void ui_search_mark(QSFSearch *s, UiCanvas *c, int row, int n, int width);
void ui_search_end(UiSearch *s);

#endif
