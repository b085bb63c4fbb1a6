/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Completion with Tab. One thread. */
#ifndef QSF_UI_COMPLETE_H
#define QSF_UI_COMPLETE_H

#include <stdbool.h>
#include <stddef.h>

struct UiApp;

#define UI_CHOICES 1000

typedef struct UiChoice {
    char text[240]; /* replaces the word, including what usually follows it ("/set ", "models/") */
    char help[120]; /* one line about it, or "" */
} UiChoice;

/* Where the choices have what is typed. */
typedef enum UiTypedAt { UI_TYPED_FIRST, UI_TYPED_INSIDE, UI_TYPED_IN_HELP } UiTypedAt;

typedef struct UiCompletion {
    UiChoice *choices; /* (n), names sorted, values and sessions in the order in which they are useful */
    size_t n, cap;
    size_t from; /* byte of the line where the word begins */
    bool keep;   /* they stay in the order in which they were added */
    UiTypedAt
        at; /* which ones are looked for now; after ui_complete: not FIRST = none begins with the word */
} UiCompletion;

/* Choices for the word that ends at line[point]: commands, what the tables know of their arguments, and in a
 * message the files that @path may name. If none begins with the word, those that have it inside, and then
 * commands, settings and sessions that have it in their help. Text from files is not cleaned: the caller does
 * that before it shows it. a: for the model's own templates and context, and the session; NULL: without. A
 * zeroed UiCompletion is empty; the previous result is discarded. Returns false if there is nothing to offer.
 *  */
bool ui_complete(UiCompletion *c, const struct UiApp *a, const char *line, size_t point);
/* Length of the common prefix of all choices. */
size_t ui_complete_common(const UiCompletion *c);
void ui_complete_free(UiCompletion *c);

#endif
