/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recent positions while types change: implements kv/carry.h. */
#include "src/kv/carry.h"

#include <stdlib.h>
#include <string.h>

#include "src/kv/cache_impl.h"

/* Finds the slot of a tile in the memory of cache i; false if it is not there. */
static bool find_slot(const QsfKvCache *c, uint32_t i, uint32_t tile, uint32_t *slot) {
    const uint32_t ring = qsf_kvcache_ring(c, i);
    if (tile >= qk_kv_tiles(c->n_past) || (ring > 0 && (uint64_t)tile * QK_KV_TILE < c->lost[i]))
        return false;
    *slot = (uint32_t)qk_kv_wrap(tile, ring / QK_KV_TILE);
    if (!c->lists.on || ring > 0) return true;
    const qk_kv_slot *list = qsf_kvlist(&c->lists, i);
    for (uint32_t e = 0; e < c->lists.n[i]; e++) {
        if (list[e].tile != tile) continue;
        *slot = list[e].slot;
        return true;
    }
    return false;
}

/* The k-th of the tiles that a state can hold: tile 0, and the last ones. */
static bool tile_at(const QsfKvCache *c, uint32_t k, uint32_t *tile) {
    const uint32_t back = QSF_KV_RECENT_TILES - 1 - k, last = c->n_past / QK_KV_TILE;
    *tile = k == 0 ? 0 : last - back;
    return k == 0 || last > back;
}

void qsf_kvcarry_find(const QsfKvCache *was, uint32_t i, unsigned which, uint32_t head, QsfKvCarried *out) {
    const qk_kv precise = qsf_kv_recent_type(&was->spec[i], was->types, which);
    *out = (QsfKvCarried){ .ops = &was->table->kv[precise] };
    if (was->carried == NULL || precise == qsf_kvcache_type(was, i, which)) return;
    for (uint32_t k = 0; k < QSF_KV_RECENT_TILES; k++) {
        uint32_t tile;
        if (!tile_at(was, k, &tile) || !find_slot(was, i, tile, &out->slot[out->n])) continue;
        out->tile[out->n] = qsf_kvrecent_held(was, i, which, head, tile, was->n_past, was->carried);
        if (out->tile[out->n] != NULL) out->n++;
    }
}

/* Stores the k-th tile of a head's K or V as a state of `to` holds it. */
static void make_tile(const QsfKvCache *c, const QsfKvCache *to, uint32_t i, unsigned which, uint32_t head,
                      uint32_t k) {
    const qk_kv_ops *ops = &to->table->kv[qsf_kv_recent_type(&to->spec[i], to->types, which)];
    const QsfKvRun run = qsf_kvcache_run(c, i, which * c->spec[i].heads + head);
    float row[QSF_MAX_HEAD_DIM];
    QsfKvCarried old;
    uint32_t tile, slot;
    if (!tile_at(c, k, &tile) || !find_slot(c, i, tile, &slot)) return;
    uint8_t *out = qsf_kvrecent_held(to, i, which, head, tile, c->n_past, to->carried);
    const uint8_t *from = c->mem + run.at + slot * qsf_kvcache_tile_bytes(c, i, which);
    const qk_kv_ops *from_ops = qsf_kvcache_ops(c, i, which);
    qsf_kvcarry_find(c, i, which, head, &old);
    for (uint32_t e = 0; e < old.n; e++) {
        if (old.slot[e] != slot) continue;
        from = old.tile[e];
        from_ops = old.ops;
    }
    if (from_ops == ops) {
        memcpy(out, from, qsf_kv_recent_tile(&to->spec[i], to->types, which));
        return;
    }
    for (uint32_t p = 0; p < QK_KV_TILE && tile * QK_KV_TILE + p < c->n_past; p++) {
        from_ops->load(row, from, (int)which, p, c->spec[i].dim);
        ops->store(out, (int)which, p, row, c->spec[i].dim);
    }
}

static void make_cache(const QsfKvCache *c, const QsfKvCache *to, uint32_t i) {
    for (unsigned which = 0; which < 2; which++)
        for (uint32_t h = 0; h < c->spec[i].heads; h++)
            for (uint32_t k = 0; k < QSF_KV_RECENT_TILES; k++) make_tile(c, to, i, which, h, k);
}

int qsf_kvcarry_make(const QsfKvCache *c, QsfKvTypes types, uint8_t **out, QsfErr *err) {
    QsfKvCache to = *c;
    uint64_t bytes = 0;
    *out = NULL;
    to.types = types;
    qsf_kvrecent_place(&to);
    for (uint32_t i = 0; i < c->n; i++) bytes += qsf_kv_recent_bytes(&c->spec[i], types);
    if (bytes == 0 || c->n_past == 0) return QSF_OK;
    to.carried = calloc(1, bytes);
    if (to.carried == NULL) return qsf_err_memory(err, "converting the KV cache");
    for (uint32_t i = 0; i < c->n; i++)
        if (to.recent.on[i]) make_cache(c, &to, i);
    *out = to.carried;
    return QSF_OK;
}
