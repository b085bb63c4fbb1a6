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

/* Those without an answer between the removed ones go with them. */
void ui_replay_drop(UiReplayList *l, uint32_t n) {
    for (; n > 0 && l->n > 0; n--) {
        UiItem *it = ui_replay_last(l);
        l->n--;
        destroy(l, it);
    }
    while (l->n_aside > l->first_aside && l->aside[l->n_aside - 1].before > l->front + (int64_t)l->n)
        destroy(l, l->aside[--l->n_aside].item);
}

bool ui_replay_withdraw(UiReplayList *l) {
    if (l->n_aside == l->cap_aside) {
        const size_t cap = l->cap_aside ? l->cap_aside * 2 : 16;
        UiReplayAside *aside = realloc(l->aside, cap * sizeof *aside);
        if (!aside) return false;
        l->aside = aside;
        l->cap_aside = cap;
    }
    UiItem *it = ui_replay_last(l);
    it->in_context = false;
    l->n--;
    l->aside[l->n_aside++] = (UiReplayAside){ it, l->front + (int64_t)l->n };
    return true;
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

/* Those without an answer before the first one in the context. */
static bool forget_aside(UiReplayList *l) {
    for (; l->first_aside < l->n_aside && l->aside[l->first_aside].before <= l->front; l->first_aside++)
        if (!push_past(l, l->aside[l->first_aside].item)) return false;
    return true;
}

bool ui_replay_forget(UiReplayList *l, uint32_t n) {
    const bool any = n > 0 && l->n > 0;
    for (; n > 0 && l->n > 0; n--) {
        if (!forget_aside(l) || !push_past(l, l->items[l->first])) return false;
        l->first++;
        l->front++;
        l->n--;
    }
    return !any || forget_aside(l);
}

/* Numbered as ui_transcript_prepend does. */
UiItem *ui_replay_prepend(UiReplayList *l, const char *question) {
    const uint32_t next = l->maker.next_number;
    UiItem *made[2];
    for (int i = 0; i < 2; i++) { /* the answer goes to the front first */
        made[i] = make_item(l, i == 0 ? UI_ANSWER : UI_USER, i == 0 ? "" : question);
        if (!made[i]) return NULL;
        l->items[--l->first] = made[i];
        l->front--;
        l->n++;
    }
    made[0]->number = made[1]->number = 0;
    l->maker.next_number = next;
    return made[0];
}

void ui_replay_clear(UiReplayList *l) {
    for (size_t i = 0; i < l->n_past; i++) destroy(l, l->past[i]);
    for (size_t i = 0; i < l->n; i++) destroy(l, l->items[l->first + i]);
    for (size_t i = l->first_aside; i < l->n_aside; i++) destroy(l, l->aside[i].item);
    l->n = l->n_past = l->first_aside = l->n_aside = 0;
}

size_t ui_replay_count(const UiReplayList *l) { return l->n_past + l->n + (l->n_aside - l->first_aside); }

void ui_replay_all(const UiReplayList *l, UiItem **dst) {
    size_t k = l->first_aside;
    for (size_t i = 0; i < l->n_past; i++) *dst++ = l->past[i];
    for (size_t i = 0; i < l->n; i++) {
        for (; k < l->n_aside && l->aside[k].before <= l->front + (int64_t)i; k++) *dst++ = l->aside[k].item;
        *dst++ = l->items[l->first + i];
    }
    for (; k < l->n_aside; k++) *dst++ = l->aside[k].item;
}

bool ui_replay_finish(UiReplayList *l, UiTranscript *t) {
    const size_t n = ui_replay_count(l);
    UiItem **items = n > 0 ? malloc(n * sizeof *items) : NULL;
    if (n > 0 && !items) return false;
    if (n > 0) ui_replay_all(l, items);
    *t = (UiTranscript){ .items = items,
                         .n = n,
                         .cap = n,
                         .ascii = l->maker.ascii,
                         .next_id = l->maker.next_id,
                         .next_number = l->maker.next_number };
    l->n = l->n_past = l->first_aside = l->n_aside = 0;
    return true;
}

void ui_replay_free(UiReplayList *l) {
    ui_replay_clear(l);
    ui_transcript_clear(&l->maker);
    free(l->items);
    free(l->past);
    free(l->aside);
    *l = (UiReplayList){ 0 };
}
