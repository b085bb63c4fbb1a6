/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows and states of a forward pass: implements snapshot.h. */
#include "src/forward/snapshot.h"

#include <stdio.h>
#include <string.h>

#include "kernels/cpu.h"
#include "src/forward/forward_impl.h"
#include "src/forward/kv_room.h"

/* ---- settings ---- */

/* Are the frequencies for long contexts in use? */
static bool rotates_long(const QsfForward *f, uint32_t ctx) {
    for (uint32_t i = 0; i < f->model->prog.n_ropes; i++) {
        const QsfRopeTable *r = &f->model->prog.rope[i];
        if (r->freq_long != NULL && ctx > r->original_ctx) return true;
    }
    return false;
}

void qsf_forward_values(const QsfForward *f, char out[QSF_FORWARD_VALUES]) {
    const uint32_t ctx = f->kv.n_past > 0 ? f->rope_ctx : f->wanted_ctx;
    memset(out, 0, QSF_FORWARD_VALUES);
    snprintf(out, QSF_FORWARD_VALUES, "k %s, v %s, %s, %s rotation, %s", qk_kv_name(f->kv.types.k),
             qk_kv_name(f->kv.types.v), f->exact ? "exact" : "not exact",
             rotates_long(f, ctx) ? "long" : "short", qk_level_name(f->table->level));
    const size_t n = strlen(out);
    const uint64_t key = qsf_adapters_key(f);
    if (key != 0) snprintf(out + n, QSF_FORWARD_VALUES - n, ", adapters %016llx", (unsigned long long)key);
}

uint8_t *qsf_forward_scratch(QsfForward *f, size_t *bytes) {
    f->act_of.buf = QSF_NONE;
    *bytes = (size_t)f->l.total;
    return f->mem;
}

/* ---- rows ---- */

uint32_t qsf_forward_n_caches(const QsfForward *f) { return f->kv.n; }

static uint32_t row_after(uint32_t pos) { return (uint32_t)qk_kv_tiles(pos); }

void qsf_forward_first_rows(const QsfForward *f, uint32_t row, uint32_t *first) {
    for (uint32_t i = 0; i < f->kv.n; i++) {
        const uint32_t held = row_after(f->kv.lost[i]);
        first[i] = held > row ? held : row;
    }
}

/* The same for one cache, and its bytes. */
static uint64_t forward_tile_bytes(const QsfForward *f, uint32_t i) {
    const QsfKvSpec *s = &f->kv.spec[i];
    const uint64_t v = s->v_is_k ? 0 : qsf_kvcache_tile_bytes(&f->kv, i, 1);
    return s->heads * (qsf_kvcache_tile_bytes(&f->kv, i, 0) + v);
}

uint64_t qsf_forward_row_bytes(const QsfForward *f, uint32_t row, const uint32_t *first) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->kv.n; i++)
        if (first == NULL || first[i] <= row) sum += forward_tile_bytes(f, i);
    return sum;
}

/* The same for one cache, and its bytes. */
static bool forward_cache_row(const QsfForward *f, uint32_t i, uint32_t row, QsfTileFn fn, void *arg) {
    const QsfKvSpec *s = &f->kv.spec[i];
    for (unsigned which = 0; which < (s->v_is_k ? 1u : 2u); which++)
        for (uint32_t h = 0; h < s->heads; h++)
            if (!fn(arg, qsf_kvcache_tile(&f->kv, i, which, h, row),
                    qsf_kvcache_tile_bytes(&f->kv, i, which)))
                return false;
    return true;
}

bool qsf_forward_row(QsfForward *f, uint32_t row, const uint32_t *first, QsfTileFn fn, void *arg) {
    for (uint32_t i = 0; i < f->kv.n; i++)
        if (first[i] <= row && !forward_cache_row(f, i, row, fn, arg)) return false;
    return true;
}

int qsf_forward_savable(const QsfForward *f, QsfErr *err) {
    if (!f->kv.converted) return qsf_forward_usable(f, err);
    return qsf_err_set(err, QSF_E_RUNTIME, "no snapshot: the KV cache was converted to another type");
}

bool qsf_forward_can_save(const QsfForward *f, uint32_t n) {
    uint32_t have[QSF_MAX_LAYERS];
    for (uint32_t i = 0; i < f->kv.n; i++) have[i] = row_after(f->kv.lost[i]) * QK_KV_TILE;
    return qsf_forward_is_enough(f, n, have);
}

/* ---- recurrent states ---- */

uint64_t qsf_forward_state_bytes(const QsfForward *f) { return f->recurrent.copy; }

uint32_t qsf_forward_state_before(const QsfForward *f, uint32_t after, uint32_t before) {
    const uint32_t pos = f->kv.n_past <= before ? f->kv.n_past : qsf_recurrent_before(&f->recurrent, before);
    return f->recurrent.mem != NULL && pos > after ? pos : 0;
}

const uint8_t *qsf_forward_state(const QsfForward *f, uint32_t pos) {
    return qsf_recurrent_at(&f->recurrent, pos, f->kv.n_past);
}

/* ---- restoring ---- */

int qsf_forward_restore(QsfForward *f, uint32_t n, QsfErr *err) {
    int rc = qsf_forward_usable(f, err);
    if (rc == QSF_OK && n > f->kv.ctx && qsf_forward_is_bounded(f))
        rc = qsf_err_set(err, QSF_E_CONTEXT, "the context has %u tokens, %u needed", (unsigned)f->kv.ctx,
                         (unsigned)n);
    if (f->kv.n_past == 0) f->rope_ctx = f->wanted_ctx;
    if (rc != QSF_OK) return rc;
    qsf_kvcache_truncate(&f->kv, qsf_recurrent_restore(&f->recurrent, 0));
    qsf_reduction_truncate(f, 0);
    return n > 0 ? qsf_reserve_positions(f, n, err) : QSF_OK;
}

uint8_t *qsf_forward_state_place(QsfForward *f) { return qsf_recurrent_at(&f->recurrent, 0, 0); }

void qsf_forward_state_restored(QsfForward *f, uint32_t pos) { qsf_recurrent_save(&f->recurrent, pos); }

bool qsf_forward_is_enough(const QsfForward *f, uint32_t n, const uint32_t *have) {
    for (uint32_t i = 0; i < f->kv.n; i++)
        if (have[i] > 0 && n < (uint64_t)have[i] + f->kv.spec[i].window) return false;
    return true;
}

void qsf_forward_restored(QsfForward *f, uint32_t n, const uint32_t *have) {
    const uint32_t end = row_after(n) * QK_KV_TILE;
    f->kv.n_past = n;
    qsf_reduction_restored(f, n);
    qsf_states_gone(f, 0);
    for (uint32_t i = 0; i < f->kv.n; i++) {
        const uint32_t ring = qsf_kvcache_ring(&f->kv, i);
        const uint32_t kept = ring > 0 && end > ring ? end - ring : 0;
        f->kv.lost[i] = have[i] > kept ? have[i] : kept;
    }
}

/* --- caches with lists in pieces that can be written to a file and read back: implements the second part of
 * snapshot.h. Tiles come in the order of their positions, and get the first slots when they are read: no
 * result depends on their places --- */

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
    const uint64_t tiles = qk_kv_tiles(n_past), tile = forward_tile_bytes(f, i);
    if (!has_list(f, i)) return first[i] < tiles ? (tiles - first[i]) * tile : 0;
    const uint64_t copies = f->kv.lists.mass != NULL ? 1 + (uint64_t)words[N_SAVED] : 0;
    return first[i] * (ENTRY_WORDS * sizeof(uint32_t) + tile + copies * QK_KV_TILE * sizeof(uint64_t));
}

bool qsf_forward_lists_cache(QsfForward *f, uint32_t i, const uint32_t *first, uint32_t n_past, QsfTileFn fn,
                             void *arg) {
    if (has_list(f, i)) return listed_cache(f, i, first[i], n_past, fn, arg);
    for (uint32_t row = first[i]; row < qk_kv_tiles(n_past); row++)
        if (!forward_cache_row(f, i, row, fn, arg)) return false;
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
