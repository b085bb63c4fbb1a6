/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recent positions in more bits: implements kv/recent.h. */
#include "src/kv/recent.h"

#include <string.h>

#include "src/kv/cache.h"

#define TAIL (QSF_KV_RECENT / QK_KV_TILE) /* tiles before that of a query */

_Static_assert(QSF_KV_RECENT_TILES == 2 + TAIL, "the first tile, those before a query's, and its own");
_Static_assert(QSF_KV_RECENT_TILES *QK_KV_TILE <= QK_KV_BLOCK, "kernels read them as one block");

static uint32_t tile_of(uint32_t pos) { return pos / QK_KV_TILE; }

/* The first tile that a query in `tile` sees as a recent one, besides tile 0. */
static uint32_t first_seen(uint32_t tile) { return tile > TAIL ? tile - TAIL : 1; }

static uint32_t held_slot(uint32_t tile) { return tile == 0 ? 0 : 1 + tile % (TAIL + 1); }

static uint32_t staged_slot(const QsfKvRecent *r, uint32_t tile) {
    return r->single ? held_slot(tile) : tile == 0 ? 0 : 1 + tile - r->first;
}

/* Where the tiles of cache i are during the pass. */
static uint8_t *staged(const QsfKvRecent *r, uint32_t i) { return r->single ? r->next + r->at[i] : r->stage; }

void qsf_kvrecent_place(QsfKvCache *c) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        c->recent.at[i] = sum;
        c->recent.on[i] = qsf_kv_has_recent(&c->spec[i], c->types);
        sum += qsf_kv_recent_bytes(&c->spec[i], c->types);
    }
}

void qsf_kvrecent_begin(QsfKvCache *c, uint32_t past, uint32_t n, uint8_t *stage, const uint8_t *old,
                        uint8_t *next) {
    QsfKvRecent *r = &c->recent;
    r->stage = stage;
    r->old = old;
    r->next = next;
    r->past = past;
    r->end = past + n;
    r->single = n == 1;
    r->first = first_seen(tile_of(r->past));
    const uint32_t last = tile_of(r->end - 1);
    r->tiles = r->single ? QSF_KV_RECENT_TILES : last < r->first ? 1 : 1 + last - r->first + 1;
}

/* Where a tile of a head is: slot `slot` of `tiles`, from the start of the cache's memory. */
static size_t place(const QsfKvCache *c, uint32_t i, unsigned which, uint32_t head, uint32_t tiles,
                    uint32_t slot) {
    const QsfKvSpec *s = &c->spec[i];
    const size_t bytes = qsf_kv_recent_tile(s, c->types, which);
    const size_t before = which ? s->heads * tiles * qsf_kv_recent_tile(s, c->types, 0) : 0;
    return before + ((size_t)head * tiles + slot) * bytes;
}

/* Copies a tile of all heads between the scratch memory and a state. */
static void copy_tile(const QsfKvCache *c, uint32_t i, uint32_t tile, bool open) {
    const QsfKvRecent *r = &c->recent;
    for (unsigned which = 0; which < 2; which++) {
        const size_t bytes = qsf_kv_recent_tile(&c->spec[i], c->types, which);
        for (uint32_t h = 0; h < c->spec[i].heads; h++) {
            const size_t at = place(c, i, which, h, r->tiles, staged_slot(r, tile)),
                         held = r->at[i] + place(c, i, which, h, QSF_KV_RECENT_TILES, held_slot(tile));
            if (open)
                memcpy(r->stage + at, r->old + held, bytes);
            else
                memcpy(r->next + held, r->stage + at, bytes);
        }
    }
}

/* The tiles that hold something when `end` positions are there, and are recent for the next one. */
static void copy_tiles(const QsfKvCache *c, uint32_t i, uint32_t end, bool open) {
    if (end == 0) return;
    copy_tile(c, i, 0, open);
    for (uint32_t t = first_seen(tile_of(end)); t * QK_KV_TILE < end; t++) copy_tile(c, i, t, open);
}

/* The state after the pass is the one before. */
static void copy_state(const QsfKvCache *c, uint32_t i) {
    const QsfKvRecent *r = &c->recent;
    memcpy(r->next + r->at[i], r->old + r->at[i], qsf_kv_recent_bytes(&c->spec[i], c->types));
}

void qsf_kvrecent_open(const QsfKvCache *c, uint32_t i) {
    if (c->recent.single)
        copy_state(c, i);
    else
        copy_tiles(c, i, c->recent.past, true);
}

void qsf_kvrecent_close(const QsfKvCache *c, uint32_t i, bool skipped) {
    if (skipped)
        copy_state(c, i);
    else if (!c->recent.single)
        copy_tiles(c, i, c->recent.end, false);
}

void qsf_kvrecent_store(const QsfKvCache *c, uint32_t i, uint32_t pos, const float *k, const float *v) {
    const QsfKvRecent *r = &c->recent;
    const QsfKvSpec *s = &c->spec[i];
    const qk_kv_ops *k_ops = &c->table->kv[qsf_kv_recent_type(s, c->types, 0)],
                    *v_ops = &c->table->kv[qsf_kv_recent_type(s, c->types, 1)];
    const size_t at = (size_t)staged_slot(r, tile_of(pos)) * QK_KV_TILE + pos % QK_KV_TILE;
    for (uint32_t h = 0; h < s->heads; h++) {
        k_ops->store(staged(r, i) + place(c, i, 0, h, r->tiles, 0), 0, at, k + (size_t)h * s->dim, s->dim);
        v_ops->store(staged(r, i) + place(c, i, 1, h, r->tiles, 0), 1, at, v + (size_t)h * s->dim, s->dim);
    }
}

/* Appends a tile, if something of it is kept. */
static void see(const QsfKvRecent *r, uint32_t tile, const qk_kv_slot *list, size_t n_list,
                QsfKvRecentView *v) {
    qk_kv_slot s = { .tile = tile, .slot = tile, .kept = UINT16_MAX };
    if (list != NULL) {
        const qk_attn all = { .list = list, .n_list = n_list };
        const size_t e = qk_kv_index(&all, (size_t)tile * QK_KV_TILE) / QK_KV_TILE;
        if (e == n_list || list[e].tile != tile) return;
        s = list[e];
    }
    v->list[v->n] = s;
    v->where[v->n++] = staged_slot(r, tile);
}

void qsf_kvrecent_view(const QsfKvCache *c, uint32_t tile, const qk_kv_slot *list, size_t n_list,
                       QsfKvRecentView *v) {
    const uint32_t first = first_seen(tile);
    v->n = 0;
    see(&c->recent, 0, list, n_list, v);
    for (uint32_t t = first; t <= tile; t++) see(&c->recent, t, list, n_list, v);
    v->from = QK_KV_TILE;
    v->to = first * QK_KV_TILE;
}

const uint8_t *qsf_kvrecent_tiles(const QsfKvCache *c, uint32_t i, unsigned which, uint32_t head) {
    return staged(&c->recent, i) + place(c, i, which, head, c->recent.tiles, 0);
}

uint8_t *qsf_kvrecent_held(const QsfKvCache *c, uint32_t i, unsigned which, uint32_t head, uint32_t tile,
                           uint32_t n_past, uint8_t *state) {
    const bool there = tile == 0 || (tile >= first_seen(tile_of(n_past)) && tile <= tile_of(n_past));
    if (!c->recent.on[i] || !there) return NULL;
    return state + c->recent.at[i] + place(c, i, which, head, QSF_KV_RECENT_TILES, held_slot(tile));
}
