/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Another context length or other types for a KV cache that holds positions: its tiles move, or are
 * converted, within the mapping. First everything that gets smaller, beginning with the first tile, then what
 * gets larger, beginning with the last one: no tile overwrites one that has not moved, and no more memory is
 * touched than the larger of both sizes. */
#include <stdlib.h>
#include <string.h>

#include "src/base/ledger.h"
#include "src/kv/cache_impl.h"
#include "src/plan/layout.h"

/* --- recent positions (kv/recent.h) while types change: what is read from a state when a tile of 2 bits
 * becomes one of more, and what a state holds with the new types --- */

/* The recent tiles of one run: where they are in the cache, and what is read instead. */
typedef struct QsfKvCarried {
    const qk_kv_ops *ops;
    uint32_t n, slot[QSF_KV_RECENT_TILES];
    const uint8_t *tile[QSF_KV_RECENT_TILES];
} QsfKvCarried;

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

/* Fills in the source of a head's K (which 0) or V of cache i, whose type was that of `was`, where
 * was->carried is more precise than the tiles. */
static void kvcarry_find(const QsfKvCache *was, uint32_t i, unsigned which, uint32_t head,
                         QsfKvCarried *out) {
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
    kvcarry_find(c, i, which, head, &old);
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

/* Makes what a state holds of the positions of c when it has these types, from c->carried and the cache: *out
 * is malloc'ed, NULL if caches of these types have no recent positions, or if c is empty. QSF_E_RUNTIME. */
static int kvcarry_make(const QsfKvCache *c, QsfKvTypes types, uint8_t **out, QsfErr *err) {
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

#define PIECE (256u << 10) /* what tiles leave behind is returned in pieces of at least this size */

/* Positions from the start of a run of cache i that hold something; of lists, once they are packed. */
static uint32_t used_positions(const QsfKvCache *c, uint32_t i) {
    const bool listed = c->lists.on && qsf_kvcache_ring(c, i) == 0;
    return listed ? c->lists.n[i] * QK_KV_TILE : qsf_kv_positions(&c->spec[i], c->n_past);
}

static size_t used_tiles(const QsfKvCache *c, uint32_t i) { return qk_kv_tiles(used_positions(c, i)); }

/* --- tiles of lists --- */

/* Moves tiles so that those in use come first: the memory after them can then be returned. */
static void pack(QsfKvCache *c, uint32_t i) {
    qk_kv_slot *list = qsf_kvlist(&c->lists, i);
    const uint32_t n = c->lists.n[i];
    uint32_t free = 0;
    memset(c->lists.drop, 0, c->lists.cap);
    for (uint32_t e = 0; e < n; e++) c->lists.drop[list[e].slot] = 1;
    for (uint32_t e = 0; e < n; e++) {
        if (list[e].slot < n) continue;
        while (c->lists.drop[free]) free++;
        for (uint32_t k = 0; k < qsf_kv_runs(&c->spec[i]); k++) {
            const QsfKvRun r = qsf_kvcache_run(c, i, k);
            const size_t tile = c->tile[i][r.which];
            memcpy(c->mem + r.at + free * tile, c->mem + r.at + list[e].slot * tile, tile);
        }
        if (c->lists.mass != NULL)
            memcpy(qsf_kvlist_mass(&c->lists, i) + (size_t)free * QK_KV_TILE,
                   qsf_kvlist_mass(&c->lists, i) + (size_t)list[e].slot * QK_KV_TILE,
                   QK_KV_TILE * sizeof *c->lists.mass);
        list[e].slot = free++;
    }
}

/* Writes to lists.drop how many positions of each slot in use hold something. */
static void count_positions(QsfKvCache *c, uint32_t i) {
    const qk_kv_slot *list = qsf_kvlist(&c->lists, i);
    for (uint32_t e = 0; e < c->lists.n[i]; e++) {
        const uint64_t first = (uint64_t)list[e].tile * QK_KV_TILE;
        const uint64_t n = c->n_past > first ? c->n_past - first : 0;
        c->lists.drop[list[e].slot] = n < QK_KV_TILE ? (uint8_t)n : QK_KV_TILE;
    }
}

/* --- one run --- */

/* n tiles in use of a run, at `from` now, and at `to` later. */
typedef struct Move {
    const qk_kv_ops *from_ops, *to_ops;
    uint8_t *from, *to;
    size_t from_tile, to_tile, n, dim; /* bytes of a tile */
    unsigned which;
    uint32_t positions;     /* in the tiles, one after the other */
    const uint8_t *in_tile; /* (n) positions of each tile; NULL = as above */
    QsfKvCarried recent;    /* what is read instead of some tiles */
    uint8_t *tile;          /* room for one */
} Move;

/* Discards what [from, from + n) does not share with [to, to + n). */
static void discard_old(uint8_t *from, const uint8_t *to, size_t n) {
    const uint8_t *lo = from, *hi = from + n;
    if (to == from) return;
    if (to < from && to + n > lo) lo = to + n;
    if (to > from && to < hi) hi = to;
    qsf_mem_discard(from + (lo - from), (uint64_t)(hi - lo));
}

/* Positions that do not exist yet are zero: what was there may be the bytes of another type. */
static void convert_tile(const Move *m, size_t t) {
    float row[QSF_MAX_HEAD_DIM];
    const size_t left = m->positions - t * QK_KV_TILE;
    const size_t n = m->in_tile != NULL ? m->in_tile[t] : left < QK_KV_TILE ? left : QK_KV_TILE;
    const uint8_t *from = m->from + t * m->from_tile;
    const qk_kv_ops *ops = m->from_ops;
    for (uint32_t e = 0; e < m->recent.n; e++) {
        if (m->recent.slot[e] != t) continue;
        from = m->recent.tile[e];
        ops = m->recent.ops;
    }
    if (ops == m->to_ops) {
        memcpy(m->to + t * m->to_tile, from, m->to_tile);
        return;
    }
    memset(m->tile, 0, m->to_tile);
    for (size_t p = 0; p < n; p++) {
        ops->load(row, from, (int)m->which, p, m->dim);
        m->to_ops->store(m->tile, (int)m->which, p, row, m->dim);
    }
    memcpy(m->to + t * m->to_tile, m->tile, m->to_tile);
}

/* Discards [lo, hi) if it is worth it. */
static bool discard(uint8_t *base, size_t lo, size_t hi, size_t least) {
    if (hi < lo + least || hi == lo) return false;
    qsf_mem_discard(base + lo, hi - lo);
    return true;
}

/* Smaller tiles, which end where the old ones begin or before. */
static void convert_down(const Move *m, uint8_t *base) {
    size_t done = (size_t)(m->from - base); /* returned, or still needed, before this offset */
    const size_t from = done, to = (size_t)(m->to - base);
    for (size_t t = 0; t < m->n; t++) {
        const size_t left = from + (t + 1) * m->from_tile, written = to + (t + 1) * m->to_tile;
        convert_tile(m, t);
        if (done < written) done = written;
        if (discard(base, done, left, t + 1 < m->n ? PIECE : 1)) done = left;
    }
}

/* Larger tiles, which begin where the old ones begin or later. */
static void convert_up(const Move *m, uint8_t *base) {
    const size_t from = (size_t)(m->from - base), to = (size_t)(m->to - base);
    size_t done = from + m->n * m->from_tile; /* everything above is returned, or still needed */
    for (size_t t = m->n; t-- > 0;) {
        const size_t left = from + t * m->from_tile, written = to + t * m->to_tile;
        convert_tile(m, t);
        if (done > written) done = written;
        if (discard(base, left, done, t > 0 ? PIECE : 1)) done = left;
    }
}

static void move_run(const Move *m, uint8_t *base) {
    if (m->from_ops == m->to_ops) {
        memmove(m->to, m->from, m->n * m->from_tile);
        discard_old(m->from, m->to, m->n * m->from_tile);
    } else if (m->to_tile <= m->from_tile) {
        convert_down(m, base);
    } else {
        convert_up(m, base);
    }
}

/* --- all caches --- */

/* Moves the tiles in use of cache i from their places in `old` to those in c. What a run leaves is returned
 * at once, because no more than its memory is charged. */
static void move_cache(QsfKvCache *c, const QsfKvCache *old, const QsfKvCache *was, uint32_t i, bool down,
                       uint8_t *tile) {
    const uint32_t n = qsf_kv_runs(&c->spec[i]);
    const bool listed = old->lists.on && qsf_kvcache_ring(old, i) == 0;
    Move m = {
        .n = used_tiles(old, i), .dim = c->spec[i].dim, .positions = used_positions(old, i), .tile = tile
    };
    if (m.n == 0) return;
    if (listed) {
        count_positions(c, i);
        m.in_tile = c->lists.drop;
    }
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t run = down ? k : n - 1 - k;
        const QsfKvRun from = qsf_kvcache_run(old, i, run), to = qsf_kvcache_run(c, i, run);
        m.which = from.which;
        m.from = c->mem + from.at;
        m.to = c->mem + to.at;
        m.from_tile = old->tile[i][from.which];
        m.to_tile = c->tile[i][to.which];
        m.from_ops = qsf_kvcache_ops(old, i, from.which);
        m.to_ops = qsf_kvcache_ops(c, i, to.which);
        if (m.from_ops == qsf_kvcache_ops(was, i, from.which))
            kvcarry_find(was, i, from.which, run % c->spec[i].heads, &m.recent);
        else
            m.recent.n = 0;
        move_run(&m, c->mem);
    }
}

/* down: no run gets larger; otherwise none gets smaller. was: the cache before both. */
static void move_caches(QsfKvCache *c, const QsfKvCache *was, uint32_t ctx, QsfKvTypes types, bool down,
                        uint8_t *tile) {
    const QsfKvCache old = *c;
    qsf_kvcache_place(c, ctx, types);
    if (qk_kv_tiles(ctx) == qk_kv_tiles(old.ctx) && qsf_kv_types_equal(types, old.types)) return;
    for (uint32_t k = 0; k < c->n; k++) move_cache(c, &old, was, down ? k : c->n - 1 - k, down, tile);
}

/* Discards the pages between the tiles in use of one run and the next run; nothing beyond `touched` is
 * resident. */
static void discard_gaps(QsfKvCache *c, uint64_t touched) {
    if (c->n_past == 0) {
        qsf_mem_discard(c->mem, touched);
        return;
    }
    for (uint32_t i = 0; i < c->n; i++) {
        for (uint32_t k = 0; k < qsf_kv_runs(&c->spec[i]); k++) {
            const QsfKvRun r = qsf_kvcache_run(c, i, k);
            const size_t used = used_tiles(c, i) * c->tile[i][r.which];
            if (r.at + used >= touched) return;
            qsf_mem_discard(c->mem + r.at + used, r.bytes - used);
        }
    }
}

int qsf_kvcache_reserve(QsfKvCache *c, uint32_t n, QsfErr *err) {
    if (n < c->reserved) discard_gaps(c, c->map.bytes);
    return qsf_kvcache_set_memory(c, c->ctx, c->types, n, err);
}

static uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Nothing gets larger. */
static int shrink(QsfKvCache *c, const QsfKvCache *was, uint32_t ctx, QsfKvTypes types, uint8_t *tile,
                  QsfErr *err) {
    if (ctx == c->ctx && qsf_kv_types_equal(types, c->types)) return QSF_OK;
    move_caches(c, was, ctx, types, true, tile);
    int rc = qsf_kvcache_set_memory(c, ctx, types, min_u32(c->reserved, ctx), err);
    discard_gaps(c, c->map.bytes);
    return rc;
}

/* Nothing gets smaller. */
static int grow(QsfKvCache *c, const QsfKvCache *was, uint32_t ctx, QsfKvTypes types, uint8_t *tile,
                QsfErr *err) {
    const uint64_t touched = c->map.bytes;
    if (ctx == c->ctx && qsf_kv_types_equal(types, c->types)) return QSF_OK;
    int rc = qsf_kvcache_set_memory(c, ctx, types, c->reserved, err);
    if (rc != QSF_OK) return rc;
    const bool convert = !qsf_kv_types_equal(types, c->types);
    move_caches(c, was, ctx, types, false, tile);
    discard_gaps(c, convert ? c->map.bytes : touched);
    return QSF_OK;
}

uint32_t qsf_kvcache_used(const QsfKvCache *c) {
    return c->lists.on ? qsf_kvcache_tiles(c) * QK_KV_TILE : c->n_past;
}

/* Rings could become something else, which their positions would not fit. */
static bool rings_change(const QsfKvCache *c, uint32_t ctx) {
    for (uint32_t i = 0; i < c->n; i++)
        if ((qsf_kv_positions(&c->spec[i], ctx) < ctx) != (qsf_kvcache_ring(c, i) > 0)) return true;
    return false;
}

/* Room for a tile of any type; NULL when out of memory. */
static uint8_t *tile_room(const QsfKvCache *c) {
    uint32_t dim = 1;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->spec[i].dim > dim) dim = c->spec[i].dim;
    return aligned_alloc(64, QK_KV_TILE * sizeof(float) * (size_t)dim);
}

static int reshape(QsfKvCache *c, uint32_t ctx, QsfKvTypes types, QsfErr *err) {
    uint8_t *tile = NULL;
    if (!qsf_kv_types_equal(types, c->types) && (tile = tile_room(c)) == NULL)
        return qsf_err_memory(err, "converting the KV cache");
    const QsfKvCache was = *c;
    uint8_t *carried = c->carried;
    int rc = tile != NULL ? kvcarry_make(c, types, &carried, err) : QSF_OK;
    if (rc == QSF_OK && tile != NULL && c->n_past > 0) c->converted = true;
    if (rc == QSF_OK)
        rc = shrink(c, &was, min_u32(ctx, c->ctx), qsf_kv_types_less(types, c->types), tile, err);
    if (rc == QSF_OK) rc = grow(c, &was, ctx, types, tile, err);
    if (carried != was.carried) free(was.carried);
    c->carried = carried;
    free(tile);
    return rc;
}

int qsf_kvcache_resize(QsfKvCache *c, uint32_t ctx, QsfKvTypes types, QsfErr *err) {
    if (qk_kv_tiles(ctx) * QK_KV_TILE < qsf_kvcache_used(c) || (!c->lists.on && ctx < c->n_past)) {
        return qsf_err_set(err, QSF_E_CONTEXT, "cannot shrink the context to %u tokens: %u are in use",
                           (unsigned)ctx, (unsigned)qsf_kvcache_used(c));
    }
    if (c->lists.on && rings_change(c, ctx))
        return qsf_err_set(err, QSF_E_CONTEXT,
                           "cannot change the context to %u tokens after positions were evicted: clear the "
                           "conversation first",
                           (unsigned)ctx);
    for (uint32_t i = 0; c->lists.on && i < c->n; i++)
        if (qsf_kvcache_ring(c, i) == 0) pack(c, i);
    int rc = c->lists.mem != NULL ? qsf_kvlists_resize(&c->lists, ctx, c->lists.threads, err) : QSF_OK;
    return rc == QSF_OK ? reshape(c, ctx, types, err) : rc;
}
