/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The messages that are sent when the answer is finished. */
#include "ui/compose/queue.h"

#include <stdlib.h>
#include <string.h>

#include "ui/buf.h"

bool ui_queue_insert(UiQueue *q, size_t at, const char *text, size_t len) {
    if (q->n == UI_QUEUE_MAX) return false;
    if (q->n == q->cap) {
        const size_t cap = q->cap ? q->cap * 2 : 4;
        UiQueued *more = realloc(q->items, cap * sizeof *more);
        if (!more) return false;
        q->items = more;
        q->cap = cap;
    }
    char *copy = ui_strdup_len(text, len);
    if (!copy) return false;
    memmove(q->items + at + 1, q->items + at, (q->n - at) * sizeof *q->items);
    q->items[at] = (UiQueued){ .text = copy, .len = len };
    q->n++;
    q->bytes += len;
    return true;
}

char *ui_queue_take(UiQueue *q, size_t i, size_t *len) {
    const UiQueued it = q->items[i];
    q->n--;
    q->bytes -= it.len;
    memmove(q->items + i, q->items + i + 1, (q->n - i) * sizeof *q->items);
    *len = it.len;
    return it.text;
}

void ui_queue_free(UiQueue *q) {
    for (size_t i = 0; i < q->n; i++) free(q->items[i].text);
    free(q->items);
    *q = (UiQueue){ 0 };
}
