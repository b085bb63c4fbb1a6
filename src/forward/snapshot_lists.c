/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Caches with lists in pieces that can be written to a file and read back: implements the second part of
 * snapshot.h. Tiles come in the order of their positions, and get the first slots when they are read: no
 * result depends on their places. */
#include <string.h>

#include "src/forward/forward_impl.h"
#include "src/forward/kv_room.h"
#include "src/forward/snapshot.h"

/* The description: settings that must be equal, then what is restored. */
enum {
    KIND,
    WINDOW,
    PROTECT,
    CTX,
    SETTINGS,
    ON = SETTINGS,
    EVICTED_AT,
    WEIGHED_END,
    N_SAVED,
    SAVED_AT,
    WORDS_USED = SAVED_AT + QSF_KV_WEIGHT_COPIES
};
_Static_assert(WORDS_USED <= QSF_LISTS_WORDS, "the description has room");

#define ENTRY_WORDS \
    3u /* of an entry: its tile, which positions are kept, and by how many tiles its keys are turned */

static bool has_list(const QsfForward *f, uint32_t i) { return qsf_kvcache_ring(&f->kv, i) == 0; }

bool qsf_forward_is_bounded(const QsfForward *f) {
    for (uint32_t i = 0; i < f->kv.n; i++)
        if (has_list(f, i)) return true;
    return false;
}

bool qsf_forward_weighs(const QsfForward *f) { return f->kv.lists.mass != NULL && qsf_forward_is_bounded(f); }

bool qsf_forward_is_listed(const QsfForward *f) { return f->kv.lists.on || qsf_forward_weighs(f); }

bool qsf_forward_lists_ready(const QsfForward *f) { return !qsf_kvlists_ahead(&f->kv.lists, f->kv.n_past); }

void qsf_forward_lists(const QsfForward *f, uint32_t words[QSF_LISTS_WORDS]) {
    const QsfKvLists *l = &f->kv.lists;
    memset(words, 0, QSF_LISTS_WORDS * sizeof *words);
    words[KIND] = f->evict.kind;
    words[WINDOW] = f->evict.window;
    words[PROTECT] = f->evict.protect;
    words[CTX] = f->kv.ctx;
    words[ON] = l->on;
    words[EVICTED_AT] = l->evicted_at;
    if (l->mass == NULL) return;
    words[WEIGHED_END] = l->weighed_end;
    words[N_SAVED] = l->n_saved;
    memcpy(words + SAVED_AT, l->saved_at, l->n_saved * sizeof *l->saved_at);
}

bool qsf_forward_lists_same(const QsfForward *f, const uint32_t words[QSF_LISTS_WORDS]) {
    uint32_t own[QSF_LISTS_WORDS];
    qsf_forward_lists(f, own);
    return f->kv.lists.mem != NULL && memcmp(own, words, SETTINGS * sizeof *words) == 0;
}

uint32_t qsf_forward_lists_reach(const uint32_t words[QSF_LISTS_WORDS], uint32_t n) {
    uint32_t at = n >= words[WEIGHED_END] ? n : 0;
    for (uint32_t k = 0; k < words[N_SAVED] && k < QSF_KV_WEIGHT_COPIES; k++)
        if (words[SAVED_AT + k] <= n && words[SAVED_AT + k] > at) at = words[SAVED_AT + k];
    return at >= words[EVICTED_AT] ? at : 0;
}

/* What the file says of itself must not lead anywhere else. */
static bool words_ok(const QsfForward *f, const uint32_t *w, uint32_t n_past) {
    if (w[ON] > 1 || w[EVICTED_AT] > n_past || w[WEIGHED_END] > n_past || w[N_SAVED] > QSF_KV_WEIGHT_COPIES)
        return false;
    if (w[ON] == 0 && (w[EVICTED_AT] > 0 || f->kv.lists.mass == NULL || n_past > f->kv.ctx)) return false;
    if (w[N_SAVED] > 0 && f->kv.lists.mass == NULL) return false;
    for (uint32_t k = 0; k < w[N_SAVED]; k++)
        if (w[SAVED_AT + k] > n_past || w[SAVED_AT + k] <= (k > 0 ? w[SAVED_AT + k - 1] : 0)) return false;
    return true;
}

/* ---- entries ---- */

void qsf_forward_lists_first(const QsfForward *f, uint32_t *first) {
    const QsfKvLists *l = &f->kv.lists;
    qsf_forward_first_rows(f, 0, first);
    for (uint32_t i = 0; i < f->kv.n; i++)
        if (has_list(f, i)) first[i] = l->on ? l->n[i] : (uint32_t)qk_kv_tiles(f->kv.n_past);
}

bool qsf_forward_lists_begin(QsfForward *f, const uint32_t words[QSF_LISTS_WORDS], const uint32_t *first,
                             uint32_t n_past) {
    QsfKvLists *l = &f->kv.lists;
    const uint32_t tiles = (uint32_t)qk_kv_tiles(n_past);
    if (n_past == 0 || !words_ok(f, words, n_past)) return false;
    for (uint32_t i = 0; i < f->kv.n; i++) {
        if (!has_list(f, i)) {
            const uint32_t window = f->kv.spec[i].window;
            if (first[i] > tiles || (first[i] > 0 && n_past < first[i] * (uint64_t)QK_KV_TILE + window))
                return false;
        } else if (first[i] == 0 || first[i] > l->cap || first[i] > tiles ||
                   (words[ON] == 0 && first[i] != tiles)) {
            return false;
        }
    }
    qsf_kvlists_start(l, 0);
    l->on = words[ON] == 1;
    for (uint32_t i = 0; i < f->kv.n; i++) {
        l->n[i] = has_list(f, i) ? first[i] : 0;
        for (uint32_t e = 0; e < l->n[i]; e++)
            qsf_kvlist(l, i)[e] = (qk_kv_slot){ .tile = e, .slot = e, .kept = UINT16_MAX };
    }
    l->evicted_at = words[EVICTED_AT];
    l->weighed_end = words[WEIGHED_END];
    l->n_saved = words[N_SAVED];
    memcpy(l->saved_at, words + SAVED_AT, sizeof l->saved_at);
    return true;
}

/* Reads or writes what is known of each entry, and checks it: tiles ascend, and the last one
 * holds the last position. */
static bool entries(QsfForward *f, uint32_t i, uint32_t n, uint32_t n_past, QsfTileFn fn, void *arg) {
    QsfKvLists *l = &f->kv.lists;
    uint32_t *moved = qsf_kvlist_moved(l, i);
    const uint32_t tiles = (uint32_t)qk_kv_tiles(n_past);
    for (uint32_t e = 0; e < n; e++) {
        uint32_t w[ENTRY_WORDS] = { e, UINT16_MAX, 0 };
        qk_kv_slot *s = &qsf_kvlist(l, i)[e];
        if (l->on) memcpy(w, (uint32_t[]){ s->tile, s->kept, moved[s->slot] }, sizeof w);
        if (!fn(arg, (uint8_t *)w, sizeof w)) return false;
        if (w[0] >= tiles || (e > 0 && l->on && w[0] <= s[-1].tile) || w[1] == 0 || w[1] > UINT16_MAX ||
            w[2] > tiles || (e == n - 1 && w[0] != tiles - 1) || (!l->on && w[0] != e))
            return false;
        if (!l->on) continue;
        s->tile = w[0];
        s->kept = (uint16_t)w[1];
        moved[s->slot] = w[2];
    }
    return true;
}

/* ---- contents ---- */

static uint32_t slot_of(const QsfForward *f, uint32_t i, uint32_t e) {
    return f->kv.lists.on ? qsf_kvlist(&f->kv.lists, i)[e].slot : e;
}

static bool weights(QsfForward *f, uint32_t i, uint32_t n, QsfTileFn fn, void *arg) {
    QsfKvLists *l = &f->kv.lists;
    const size_t bytes = QK_KV_TILE * sizeof *l->mass;
    for (uint32_t e = 0; e < n; e++) {
        uint64_t *mass = qsf_kvlist_mass(l, i) + (size_t)slot_of(f, i, e) * QK_KV_TILE;
        if (!fn(arg, (uint8_t *)mass, bytes)) return false;
    }
    for (uint32_t k = 0; k < l->n_saved; k++)
        if (!fn(arg, (uint8_t *)qsf_kvlist_saved(l, k, i), n * bytes)) return false;
    return true;
}

static bool listed_cache(QsfForward *f, uint32_t i, uint32_t n, uint32_t n_past, QsfTileFn fn, void *arg) {
    const QsfKvSpec *s = &f->kv.spec[i];
    if (!entries(f, i, n, n_past, fn, arg)) return false;
    for (unsigned which = 0; which < (s->v_is_k ? 1u : 2u); which++)
        for (uint32_t h = 0; h < s->heads; h++)
            for (uint32_t e = 0; e < n; e++)
                if (!fn(arg, qsf_kvcache_tile(&f->kv, i, which, h, slot_of(f, i, e)),
                        qsf_kvcache_tile_bytes(&f->kv, i, which)))
                    return false;
    return f->kv.lists.mass == NULL || weights(f, i, n, fn, arg);
}

uint64_t qsf_forward_lists_bytes(const QsfForward *f, uint32_t i, const uint32_t words[QSF_LISTS_WORDS],
                                 const uint32_t *first, uint32_t n_past) {
    const uint64_t tiles = qk_kv_tiles(n_past), tile = qsf_forward_tile_bytes(f, i);
    if (!has_list(f, i)) return first[i] < tiles ? (tiles - first[i]) * tile : 0;
    const uint64_t copies = f->kv.lists.mass != NULL ? 1 + (uint64_t)words[N_SAVED] : 0;
    return first[i] * (ENTRY_WORDS * sizeof(uint32_t) + tile + copies * QK_KV_TILE * sizeof(uint64_t));
}

bool qsf_forward_lists_cache(QsfForward *f, uint32_t i, const uint32_t *first, uint32_t n_past, QsfTileFn fn,
                             void *arg) {
    if (has_list(f, i)) return listed_cache(f, i, first[i], n_past, fn, arg);
    for (uint32_t row = first[i]; row < qk_kv_tiles(n_past); row++)
        if (!qsf_forward_cache_row(f, i, row, fn, arg)) return false;
    return true;
}

void qsf_forward_lists_done(QsfForward *f, const uint32_t *first, uint32_t n_past) {
    uint32_t have[QSF_MAX_LAYERS];
    QsfKvLists *l = &f->kv.lists;
    for (uint32_t i = 0; i < f->kv.n; i++) {
        have[i] = has_list(f, i) ? 0 : first[i] * QK_KV_TILE;
        if (l->on) qsf_kvlist_sort_spare(l, i);
    }
    qsf_forward_restored(f, n_past, have);
    qsf_evicting_note(f);
}
