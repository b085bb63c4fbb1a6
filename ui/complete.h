/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Completion with Tab. One thread. */
#ifndef QSF_UI_COMPLETE_H
#define QSF_UI_COMPLETE_H

#include <stdbool.h>
#include <stddef.h>

#define UI_CHOICES 64

typedef struct UiChoice {
    char text[240]; /* replaces the word, including what usually follows it ("/set ", "models/") */
    char help[120]; /* one line about it, or "" */
} UiChoice;

typedef struct UiCompletion {
    UiChoice *choices; /* (n), sorted */
    size_t n, cap;
    size_t from; /* byte of the line where the word begins */
} UiCompletion;

/* Choices for the word that ends at line[point]. A zeroed UiCompletion is empty; the previous result is
 * discarded. Returns false if there is nothing to offer. */
bool ui_complete(UiCompletion *c, const char *line, size_t point);
/* Length of the common prefix of all choices. */
size_t ui_complete_common(const UiCompletion *c);
void ui_complete_free(UiCompletion *c);

#endif
