/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The messages of a session while its file is replayed. Unlike the transcript it takes constant time for each
 * record: a file may have millions of them, and forget a message after each. */
#include <stdlib.h>
#include <string.h>

#include "ui/app_internal.h"

/* Makes space for one more item at the front and at the end. */
static bool make_space(UiReplayList *l) {
    if (l->first > 0 && l->first + l->n < l->cap) return true;
    const size_t cap = l->n * 2 + 16, first = (cap - l->n) / 2;
    UiItem **items = malloc(cap * sizeof *items);
    if (!items) return false;
    if (l->n > 0) memcpy(items + first, l->items + l->first, l->n * sizeof *items);
    free(l->items);
    l->items = items;
    l->first = first;
    l->cap = cap;
    return true;
}

/* The transcript makes one item at a time. */
static UiItem *make_item(UiReplayList *l, UiKind kind, const char *text) {
    UiItem *it = make_space(l) ? ui_transcript_add(&l->maker, kind, text, strlen(text)) : NULL;
    l->maker.n = 0;
    return it;
}

static void destroy(UiReplayList *l, UiItem *it) {
    l->maker.items[0] = it; /* there is space: it was made here */
    l->maker.n = 1;
    ui_transcript_remove(&l->maker, it);
}

UiItem *ui_replay_last(const UiReplayList *l) { return l->n > 0 ? l->items[l->first + l->n - 1] : NULL; }

UiItem *ui_replay_add(UiReplayList *l, UiKind kind) {
    UiItem *it = make_item(l, kind, "");
    if (it) l->items[l->first + l->n++] = it;
    return it;
}

void ui_replay_drop(UiReplayList *l, uint32_t n) {
    for (; n > 0 && l->n > 0; n--) {
        UiItem *it = ui_replay_last(l);
        l->n--;
        destroy(l, it);
    }
}

static bool push_past(UiReplayList *l, UiItem *it) {
    if (l->n_past == l->cap_past) {
        const size_t cap = l->cap_past ? l->cap_past * 2 : 16;
        UiItem **past = realloc(l->past, cap * sizeof *past);
        if (!past) return false;
        l->past = past;
        l->cap_past = cap;
    }
    l->past[l->n_past++] = it;
    it->in_context = false;
    it->past = true;
    return true;
}

bool ui_replay_forget(UiReplayList *l, uint32_t n) {
    for (; n > 0 && l->n > 0; n--) {
        if (!push_past(l, l->items[l->first])) return false;
        l->first++;
        l->n--;
    }
    return true;
}

/* Numbered as ui_transcript_prepend does. */
UiItem *ui_replay_prepend(UiReplayList *l, const char *question) {
    const uint32_t next = l->maker.next_number;
    UiItem *made[2];
    for (int i = 0; i < 2; i++) { /* the answer goes to the front first */
        made[i] = make_item(l, i == 0 ? UI_ANSWER : UI_USER, i == 0 ? "" : question);
        if (!made[i]) return NULL;
        l->items[--l->first] = made[i];
        l->n++;
    }
    made[0]->number = made[1]->number = 0;
    l->maker.next_number = next;
    return made[0];
}

void ui_replay_clear(UiReplayList *l) {
    for (size_t i = 0; i < l->n_past; i++) destroy(l, l->past[i]);
    for (size_t i = 0; i < l->n; i++) destroy(l, l->items[l->first + i]);
    l->n = l->n_past = 0;
}

bool ui_replay_finish(UiReplayList *l, UiTranscript *t) {
    const size_t n = l->n_past + l->n;
    UiItem **items = n > 0 ? malloc(n * sizeof *items) : NULL;
    if (n > 0 && !items) return false;
    if (l->n_past > 0) memcpy(items, l->past, l->n_past * sizeof *items);
    if (l->n > 0) memcpy(items + l->n_past, l->items + l->first, l->n * sizeof *items);
    *t = (UiTranscript){ .items = items,
                         .n = n,
                         .cap = n,
                         .ascii = l->maker.ascii,
                         .next_id = l->maker.next_id,
                         .next_number = l->maker.next_number };
    l->n = l->n_past = 0;
    return true;
}

void ui_replay_free(UiReplayList *l) {
    ui_replay_clear(l);
    ui_transcript_clear(&l->maker);
    free(l->items);
    free(l->past);
    *l = (UiReplayList){ 0 };
}
