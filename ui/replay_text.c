/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The texts of a resumed session: measured, and read from its file only if they fit in the RAM budget. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/app_internal.h"

#define UI_ROOM_MIN \
    ((uint64_t)1 << 20) /* for texts beside a model that takes the whole budget: its plan has a reserve */
#define UI_BLOCK_BYTES     128 /* and on the screen */
#define UI_LINE_BYTES      32  /* of a line on the screen, while their array grows */
#define UI_LINE_CELLS      60
#define UI_TREE_SHARE      8 /* and their tree about this one */
#define UI_TREE_MIN        1024u
#define UI_LIST_BYTES      24u /* of a message in the lists, while they grow */
#define UI_PLACE_BYTES     48u /* of a record of a message, in its item and in the tree, while they grow */
#define UI_TOKEN_IDS_SHARE 4   /* tokens of answers take at most this part of what is left */
#define UI_PAST_SHARE      16  /* messages that left the context take at most this part */

static double mb(uint64_t bytes) { return (double)bytes / (1 << 20); }

bool ui_item_place(UiItem *it, const QSFLogRecord *r) {
    UiPlaces *p = it->places;
    if (!p) p = it->places = calloc(1, sizeof *p);
    if (!p) return false;
    if (p->n == p->cap) {
        const size_t cap = p->cap ? p->cap * 2 : 1;
        uint64_t *at = realloc(p->at, cap * sizeof *at);
        if (!at) return false;
        p->at = at;
        p->cap = cap;
    }
    p->at[p->n++] = r->at;
    p->bytes += r->text_bytes + r->reasoning_bytes + r->exact_bytes;
    p->exact = r->exact_bytes > 0;
    p->ids = r->ids_bytes;
    p->lines += r->text_lines + r->reasoning_lines;
    p->text += r->text_bytes;
    return true;
}

/* What this item takes when its text is in memory, besides the item. */
static uint64_t text_cost(const UiApp *a, const UiItem *it) {
    const UiPlaces *p = it->places;
    if (!p) return 0;
    const uint64_t lines = a->full_screen ? p->lines + p->bytes / UI_LINE_CELLS + 1 : 0;
    return p->bytes + lines * UI_LINE_BYTES;
}

/* An automatic budget grows with the text, and so does a part of the available memory. */
static bool is_fixed(const QSFSettings *s) { return s->ram_budget > 0 || s->ram_percent > 0; }

/* Beside the loaded model, what its plan leaves; before one is loaded, what the process does not use yet. */
static uint64_t used_now(const UiApp *a, bool fixed) {
    const QSFStats *s = &a->stats;
    uint64_t used = 0, planned = 0;
    if (!a->model_ready || !fixed) return s->rss;
    for (uint32_t i = 0; i < s->n_mem; i++) {
        used += s->mem[i].used;
        planned += s->mem[i].planned;
    }
    return (used > planned ? used : planned) + ui_transcript_held(&a->chat);
}

static uint64_t budget_now(const UiApp *a, const QSFSettings *s) {
    const uint64_t available = qsf_memory_available();
    if (a->model_ready && is_fixed(s)) return a->stats.budget;
    const uint64_t most = a->stats.rss + available;
    if (s->ram_budget > 0) return s->ram_budget < most ? s->ram_budget : most;
    return s->ram_percent > 0 ? available / 100 * s->ram_percent : a->stats.rss + available / 2;
}

void ui_room_measure(UiApp *a, const QSFSettings *s, UiRoom *room) {
    ui_app_refresh_stats(a);
    room->budget = budget_now(a, s);
    const uint64_t used = used_now(a, is_fixed(s));
    room->bytes = room->budget == 0 ? UINT64_MAX : room->budget > used ? room->budget - used : 0;
    if (room->bytes < UI_ROOM_MIN) room->bytes = UI_ROOM_MIN;
}

bool ui_room_for_more(UiApp *a, UiRoom *room, uint64_t more) {
    QSFSettings s = a->settings;
    if (a->model_ready) {
        s.ram_budget = a->stats.budget;
        s.ram_percent = 0;
    }
    ui_room_measure(a, &s, room);
    const uint64_t held = ui_transcript_held(&a->chat);
    return room->bytes > UI_ROOM_MIN ? more <= room->bytes : held + more <= UI_ROOM_MIN;
}

bool ui_room_for_items(const UiRoom *room, uint64_t items, uint64_t places) {
    const uint64_t left = room->bytes - room->bytes / UI_TREE_SHARE;
    return items * (UI_ITEM_BYTES + UI_LIST_BYTES) + places * UI_PLACE_BYTES <= left;
}

uint32_t ui_room_for_tree(const UiRoom *room) {
    const uint64_t n = room->bytes / UI_TREE_SHARE / sizeof(UiNode);
    return n > UI_TREE_MAX ? UI_TREE_MAX : n < UI_TREE_MIN ? UI_TREE_MIN : (uint32_t)n;
}

void ui_room_refuse(const UiApp *a, UiRoom *room, const char *name, uint64_t need, char *err, size_t cap) {
    room->refused = true;
    if (need == 0) {
        (void)snprintf(
            err, cap,
            "session %s: it has more messages than fit in the %.1f MB that are free in the RAM budget of "
            "%.0f MB: set a larger one with %s",
            name, mb(room->bytes), mb(room->budget), a->started ? "/budget" : "--ram-budget");
        return;
    }
    const uint64_t more = need > room->bytes ? need - room->bytes : 0;
    const unsigned long long enough = (unsigned long long)((room->budget + more) >> 20) + 1;
    (void)snprintf(
        err, cap,
        "session %s: its messages need %.1f MB, but %.1f MB are free in the RAM budget of %.0f MB: "
        "%s %llu makes room",
        name, mb(need), mb(room->bytes), mb(room->budget), a->started ? "/budget" : "--ram-budget", enough);
}

/* ---- reading ---- */

typedef struct Load {
    UiTranscript *t;
    UiItem *it;
    UiBuf exact, ids;
    bool last, tokens; /* the last record: of the last answer; the tokens are wanted */
    bool failed;       /* out of memory */
} Load;

static void put(void *arg, QSFLogPart part, const char *s, size_t len) {
    Load *l = arg;
    if (l->failed || (part == QSF_LOG_IS_EXACT && !l->last) || (part == QSF_LOG_IS_IDS && !l->tokens)) return;
    l->failed = part == QSF_LOG_IS_EXACT       ? !ui_buf_add(&l->exact, s, len)
                : part == QSF_LOG_IS_IDS       ? !ui_buf_add(&l->ids, s, len)
                : part == QSF_LOG_IS_REASONING ? !ui_item_think(l->t, l->it, s, len, 0)
                                               : !ui_item_append(l->t, l->it, s, len);
}

static void places_free(UiItem *it) {
    if (it->places) free(it->places->at);
    free(it->places);
    it->places = NULL;
}

/* Only an answer that can be continued needs its exact text. tokens: it gets them too. */
static bool load_item(UiTranscript *t, UiItem *it, bool last, bool tokens, const QSFChatLog *log) {
    Load l = { .t = t, .it = it };
    const size_t n = it->places->n;
    const uint64_t *at = it->places->at;
    bool ok = ui_buf_reserve(&it->raw, it->places->text) && qsf_chatlog_texts(log, at, n - 1, put, &l);
    l.last = last && it->places->exact && it->kind == UI_ANSWER;
    l.tokens = tokens && it->kind == UI_ANSWER;
    ok = ok && qsf_chatlog_texts(log, at + n - 1, 1, put, &l) && !l.failed;
    ui_item_set_exact(it, l.exact.data);
    ui_item_set_ids(it, l.ids.data);
    places_free(it);
    if (it->thought) it->thought->seconds = 0;
    ui_item_close(it);
    return ok;
}

static bool leave_on_disk(UiTranscript *t, UiItem *it) {
    char text[80];
    const int n = snprintf(text, sizeof text, "(%.1f MB, left on disk to save memory)",
                           mb(it->places->bytes));
    places_free(it);
    bool ok = ui_item_append(t, it, text, (size_t)n);
    ui_item_close(it);
    return ok;
}

/* The tokens of the newest answers are loaded, as far as they fit: returns the index of the first of them. */
static size_t first_with_tokens(const UiTranscript *t, uint64_t room) {
    size_t i = t->n;
    for (uint64_t sum = 0; i > 0; i--) {
        const UiItem *it = t->items[i - 1];
        if (it->in_context && it->places) sum += it->places->ids;
        if (sum > room) break;
    }
    return i;
}

/* The newest ones first, as far as they fit. */
static bool load_past(UiApp *a, UiTranscript *t, const QSFChatLog *log, uint64_t room) {
    bool ok = true;
    for (size_t i = t->n; ok && i > 0; i--) {
        UiItem *it = t->items[i - 1];
        if (!it->places) continue;
        const uint64_t cost = text_cost(a, it);
        ok = cost <= room ? load_item(t, it, false, false, log) : leave_on_disk(t, it);
        room -= cost <= room ? cost : 0;
    }
    return ok;
}

bool ui_texts_load(UiApp *a, UiTranscript *t, const QSFChatLog *log, UiRoom *room, const char *name,
                   char *err, size_t cap) {
    uint64_t need = t->n * (uint64_t)(UI_ITEM_BYTES + (a->full_screen ? UI_BLOCK_BYTES : 0));
    bool ok = true;
    const UiItem *last = ui_transcript_last(t);
    for (size_t i = 0; i < t->n; i++)
        if (t->items[i]->in_context) need += text_cost(a, t->items[i]);
    const size_t from = need < room->bytes ? first_with_tokens(t, (room->bytes - need) / UI_TOKEN_IDS_SHARE)
                                           : t->n;
    for (size_t i = 0; ok && need <= room->bytes && i < t->n; i++) {
        UiItem *it = t->items[i];
        if (!it->in_context || !it->places) continue;
        ok = load_item(t, it, it == last, i >= from, log);
        need += it->shown.len + (it->thought ? it->thought->shown.len : 0); /* it has control characters */
        need += it->ids ? strlen(it->ids) : 0;
    }
    if (ok && need > room->bytes) {
        ui_room_refuse(a, room, name, need, err, cap);
        return false;
    }
    const uint64_t past = room->bytes / UI_PAST_SHARE, left = room->bytes - need;
    ok = ok && load_past(a, t, log, past < left ? past : left);
    if (!ok) (void)snprintf(err, cap, "session %s: cannot read its messages", name);
    return ok;
}
