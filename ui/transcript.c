/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The conversation as data. */
#include "ui/transcript.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "qsf_engine.h"

/* The model's context limits messages; this limits output of the program. */
#define UI_SAID_MAX 200

static bool is_message(UiKind kind) { return kind == UI_USER || kind == UI_ANSWER; }

static double now_realtime(void) {
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void item_free(UiItem *it) {
    if (it->thought) item_free(it->thought);
    free(it->exact);
    free(it->ids);
    if (it->places) free(it->places->at);
    free(it->places);
    ui_buf_free(&it->raw);
    ui_buf_free(&it->plain);
    ui_buf_free(&it->shown);
    free(it);
}

static bool make_room(UiTranscript *t) {
    if (t->n < t->cap) return true;
    size_t cap = t->cap ? t->cap * 2 : 32;
    UiItem **p = realloc(t->items, cap * sizeof *p);
    if (!p) return false;
    t->items = p;
    t->cap = cap;
    return true;
}

static void forget_oldest_said(UiTranscript *t) {
    for (size_t i = 0; i < t->n; i++) {
        if (!is_message(t->items[i]->kind)) {
            ui_transcript_remove(t, t->items[i]);
            return;
        }
    }
}

UiItem *ui_transcript_add(UiTranscript *t, UiKind kind, const char *text, size_t len) {
    if (!is_message(kind) && t->n_said >= UI_SAID_MAX) forget_oldest_said(t);
    UiItem *it = make_room(t) ? calloc(1, sizeof *it) : NULL;
    UiItem *last = kind == UI_USER ? ui_transcript_last(t) : NULL;
    if (!it) return NULL;
    if (last) ui_item_set_exact(last, NULL); /* it will not be continued */
    it->kind = kind;
    it->id = ++t->next_id;
    it->time = now_realtime();
    if (is_message(kind)) {
        it->in_context = true;
        it->number = ++t->next_number;
    } else {
        t->n_said++;
    }
    t->items[t->n++] = it;
    if (!ui_item_append(t, it, text, len)) {
        ui_transcript_remove(t, it);
        return NULL;
    }
    if (kind != UI_ANSWER) ui_item_close(it);
    return it;
}

UiItem *ui_transcript_insert(UiTranscript *t, uint32_t after, UiKind kind, const char *text, size_t len) {
    UiItem *it = ui_transcript_add(t, kind, text, len);
    size_t i = it ? t->n - 1 : 0;
    for (; i > 0 && t->items[i - 1]->id > after; i--) t->items[i] = t->items[i - 1];
    if (it) t->items[i] = it;
    return it;
}

/* From here on the shown text differs from the raw text. */
static bool part_ways(UiItem *it, size_t common) {
    if (it->differs) return true;
    it->differs = true;
    return ui_buf_add(&it->shown, ui_buf_str(&it->raw), common);
}

bool ui_item_append(UiTranscript *t, UiItem *it, const char *text, size_t len) {
    size_t before = it->raw.len;
    if (!ui_buf_add(&it->raw, text, len)) return false;
    it->version++;
    it->clean.ascii = t->ascii;
    char *tmp = malloc(QSF_CLEAN_MAX(len));
    if (!tmp) return false;
    size_t n = qsf_clean(&it->clean, text, len, false, tmp);
    bool same = n == len && memcmp(tmp, text, len) == 0;
    bool ok = true;
    if (it->differs || !same) ok = part_ways(it, before) && ui_buf_add(&it->shown, tmp, n);
    free(tmp);
    return ok;
}

void ui_item_show_as(UiTranscript *t, UiItem *it, const char *text, size_t len) {
    QSFClean clean = { .ascii = t->ascii };
    char *tmp = malloc(QSF_CLEAN_MAX(len));
    if (!tmp) return;
    const size_t n = qsf_clean(&clean, text, len, true, tmp);
    ui_buf_clear(&it->shown);
    it->differs = ui_buf_add(&it->shown, tmp, n);
    it->version++;
    free(tmp);
}

/* Reasoning of several blocks is displayed without the tags between them. */
static bool set_plain(UiItem *thought, const char *added, size_t len) {
    const UiBuf *b = thought->differs ? &thought->shown : &thought->raw;
    if (thought->plain.len == 0 && !memchr(added, '<', len) && !memchr(added, '[', len)) return true;
    char *plain = malloc(b->len + 1);
    if (!plain) return false;
    size_t whole, n = qsf_reasoning_plain(ui_buf_str(b), b->len, plain);
    (void)qsf_reasoning_body(ui_buf_str(b), b->len, &whole);
    ui_buf_clear(&thought->plain);
    const bool ok = n == whole || ui_buf_add(&thought->plain, plain, n);
    free(plain);
    return ok;
}

bool ui_item_think(UiTranscript *t, UiItem *it, const char *text, size_t len, uint32_t tokens) {
    if (!it->thought) {
        it->thought = calloc(1, sizeof *it->thought);
        if (!it->thought) return false;
        *it->thought = (UiItem){ .kind = UI_THOUGHT, .open = true, .time = now_realtime() };
    }
    /* An answer that continues: the time since it was cut does not count. */
    if (!it->thought->open) it->thought->time = now_realtime() - it->thought->seconds;
    it->thought->open = true;
    it->version++;
    it->thought->tokens += tokens;
    it->thought->seconds = now_realtime() - it->thought->time;
    return ui_item_append(t, it->thought, text, len) && set_plain(it->thought, text, len);
}

void ui_item_set_exact(UiItem *it, char *text) {
    free(it->exact);
    it->exact = text;
}

void ui_item_set_ids(UiItem *it, char *ids) {
    free(it->ids);
    it->ids = ids;
}

bool ui_item_thought(const UiItem *it) {
    size_t len = 0;
    if (it->thought) (void)ui_item_shown(it->thought, &len);
    return len > 0 || (it->thought && it->thought->open);
}

UiPlace ui_item_end(const UiItem *it) {
    return (UiPlace){ .thought = it->thought ? it->thought->raw.len : 0, .text = it->raw.len };
}

void ui_item_close(UiItem *it) {
    if (it->thought && it->thought->open) {
        it->thought->open = false;
        ui_item_close(it->thought);
    }
    char rest[QSF_CLEAN_MAX(0)];
    size_t n = qsf_clean(&it->clean, "", 0, true, rest);
    if (n > 0 && part_ways(it, it->raw.len)) ui_buf_add(&it->shown, rest, n);
    it->version++;
}

const char *ui_item_shown(const UiItem *it, size_t *len) {
    const UiBuf *b = it->differs ? &it->shown : &it->raw;
    if (it->plain.len > 0) {
        *len = it->plain.len;
        return ui_buf_str(&it->plain);
    }
    if (it->kind == UI_THOUGHT) return qsf_reasoning_body(ui_buf_str(b), b->len, len);
    *len = b->len;
    return ui_buf_str(b);
}

static void remove_at(UiTranscript *t, size_t i) {
    if (!is_message(t->items[i]->kind)) t->n_said--;
    item_free(t->items[i]);
    memmove(t->items + i, t->items + i + 1, (t->n - i - 1) * sizeof *t->items);
    t->n--;
}

void ui_transcript_remove(UiTranscript *t, UiItem *it) {
    for (size_t i = t->n; i > 0; i--) {
        if (t->items[i - 1] == it) {
            remove_at(t, i - 1);
            return;
        }
    }
}

void ui_transcript_clear(UiTranscript *t) {
    for (size_t i = 0; i < t->n; i++) item_free(t->items[i]);
    free(t->items);
    *t = (UiTranscript){ .ascii = t->ascii, .next_id = t->next_id, .next_number = t->next_number };
}

void ui_transcript_begin(UiTranscript *t) {
    for (size_t i = 0; i < t->n; i++) {
        UiItem *it = t->items[i];
        if (!is_message(it->kind)) continue;
        it->in_context = false;
        it->past = true;
        it->version++;
    }
}

UiItem *ui_transcript_last(const UiTranscript *t) {
    for (size_t i = t->n; i > 0; i--) {
        if (t->items[i - 1]->in_context) return t->items[i - 1];
    }
    return NULL;
}

UiItem *ui_transcript_last_of(const UiTranscript *t, UiKind kind) {
    for (size_t i = t->n; i > 0; i--) {
        if (t->items[i - 1]->kind == kind && !t->items[i - 1]->past) return t->items[i - 1];
    }
    return NULL;
}

/* Start of the last n messages that the model sees; t->n if there is none. *found: their number. */
static size_t begin_of_last(const UiTranscript *t, uint32_t n, uint32_t *found) {
    size_t from = t->n;
    *found = 0;
    for (size_t i = t->n; i > 0 && *found < n; i--) {
        if (!t->items[i - 1]->in_context) continue;
        from = i - 1;
        (*found)++;
    }
    return from;
}

uint32_t ui_transcript_drop(UiTranscript *t, uint32_t n) {
    uint32_t dropped;
    size_t from = begin_of_last(t, n, &dropped);
    bool gone = true; /* the message before the item was dropped */
    for (size_t i = from; i < t->n;) {
        const UiItem *it = t->items[i];
        if (is_message(it->kind)) gone = it->in_context;
        if (gone)
            remove_at(t, i);
        else
            i++;
    }
    return dropped;
}

uint32_t ui_transcript_forget(UiTranscript *t, uint32_t n) {
    uint32_t gone = 0;
    for (size_t i = 0; i < t->n && gone < n; i++) {
        UiItem *it = t->items[i];
        if (!it->in_context) continue;
        it->in_context = false;
        it->past = true;
        it->version++;
        gone++;
    }
    return gone;
}

bool ui_transcript_take(UiTranscript *t, UiTranscript *from) {
    const size_t n = t->n + from->n;
    UiItem **p = n > t->cap ? realloc(t->items, n * sizeof *p) : t->items;
    if (n > 0 && !p) return false;
    if (n > t->cap) t->cap = n;
    t->items = p;
    for (size_t i = 0; i < from->n; i++) t->items[t->n++] = from->items[i];
    if (from->next_number > t->next_number) t->next_number = from->next_number;
    if (from->next_id > t->next_id) t->next_id = from->next_id;
    from->n = 0;
    return true;
}

/* Moves the last item to place i. */
static void move_last(UiTranscript *t, size_t i) {
    UiItem *it = t->items[t->n - 1];
    memmove(t->items + i + 1, t->items + i, (t->n - 1 - i) * sizeof *t->items);
    t->items[i] = it;
}

bool ui_transcript_prepend(UiTranscript *t, const char *question, const char *text, size_t len) {
    size_t at = 0;
    while (at < t->n && !t->items[at]->in_context) at++;
    const uint32_t next = t->next_number;
    UiItem *user = ui_transcript_add(t, UI_USER, question, strlen(question));
    UiItem *answer = user ? ui_transcript_add(t, UI_ANSWER, text, len) : NULL;
    t->next_number = next;
    if (!answer) {
        if (user) ui_transcript_remove(t, user);
        return false;
    }
    ui_item_close(answer);
    move_last(t, at); /* the answer */
    move_last(t, at); /* the question before it */
    user->number = answer->number = 0;
    return true;
}

size_t ui_transcript_bytes(const UiTranscript *t) {
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) n += t->items[i]->in_context ? t->items[i]->raw.len : 0;
    return n;
}

uint64_t ui_transcript_held(const UiTranscript *t) {
    uint64_t sum = 0;
    for (size_t i = 0; i < t->n; i++) {
        const UiItem *it = t->items[i];
        sum += UI_ITEM_BYTES + it->raw.len + it->shown.len + (it->ids ? strlen(it->ids) : 0);
        if (it->thought)
            sum += UI_ITEM_BYTES + it->thought->raw.len + it->thought->shown.len + it->thought->plain.len;
    }
    return sum;
}

size_t ui_transcript_count(const UiTranscript *t, size_t *of_user) {
    size_t n = 0, user = 0;
    for (size_t i = 0; i < t->n; i++) {
        n += t->items[i]->in_context;
        user += t->items[i]->in_context && t->items[i]->kind == UI_USER;
    }
    if (of_user) *of_user = user;
    return n;
}
