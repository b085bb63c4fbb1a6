/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The messages that are sent when the answer is finished. One thread. */
#ifndef QSF_UI_QUEUE_H
#define QSF_UI_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#define UI_QUEUE_MAX 100 /* messages */

typedef struct UiQueued {
    char *text; /* NUL-terminated */
    size_t len;
} UiQueued;

/* Zeroed it is empty. */
typedef struct UiQueue {
    UiQueued *items; /* (n), the next one first */
    size_t n, cap;
    size_t bytes; /* of all texts */
    bool held;    /* an answer was stopped: nothing is sent by itself until the user sends something */
} UiQueue;

/* Adds a message at index `at`, at most q->n. false if there are UI_QUEUE_MAX already, or without memory. */
bool ui_queue_insert(UiQueue *q, size_t at, const char *text, size_t len);
/* Removes message i, which must exist, and returns it; the caller frees it. */
char *ui_queue_take(UiQueue *q, size_t i, size_t *len);
void ui_queue_free(UiQueue *q);

#endif
