/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The queries of a call of attention, how the tiles they read are stored, and which positions
 * each of them sees. */
#ifndef QSF_KERNELS_GENERIC_KV_QUERIES_H
#define QSF_KERNELS_GENERIC_KV_QUERIES_H

#include "kernels/kvrotate.h"

typedef struct kv_work kv_work;

/* How a tile becomes floats: dimensions [from, from + n) of K as (n, 16), V as 16 rows of pad
 * floats. from is a multiple of
 * 16. open_scale (16) is NULL for formats without. */
typedef struct kv_format {
    size_t elem; /* bytes; of packed tiles 0 */
    size_t (*tile_bytes)(size_t dim);
    kv_score_fn score; /* on tiles as they are; NULL where there are scores and rows */
    kv_mix_fn mix;
    void (*open_k)(float *dst, const char *tile, size_t from, size_t n);  /* NULL = never wanted */
    void (*open_v)(float *dst, const char *tile, size_t dim, size_t pad); /* the same */
    void (*open_scale)(float *dst, const char *tile, size_t dim);
    /* With integers (kv_ints.h), on n tiles as they are; NULL = with floats. rows not where V is K. */
    void (*scores)(const kv_work *w, size_t i, const kv_tiles *k, size_t n, int nq);
    void (*rows)(const qk_kv_rows *x, int nq);
    int code_bits;
    int rotated; /* rows were, by kernels/kvrotate.h */
} kv_format;

/* Formats by qk_kv. */
static const kv_format *const kv_format_of[QK_KV_N];

struct kv_work {
    const qk_attn *a;
    const kv_format *fk, *fv; /* fv: of K where V is K */
    size_t n, dim, pad;       /* queries; dimensions, and padded */
    size_t k_bytes, v_bytes;  /* of a tile */
    float *block, *scale, *scale_v, *q, *s, *lanes;
    float *turn; /* a panel of a tile of K, and after it of a block as rows; only if V is K */
    float *part; /* of query i at i * stride: maximum, sum, ..., and the sums at 16 and after */
    size_t stride;
    /* What query i sees, [start, end) as qk_kv_index counts. The code below calls these numbers positions:
     * without a list they are. */
    size_t start[64], end[64];
};

static kv_work kv_work_at(const qk_attn *a, const kv_format *f) {
    const size_t most = a->v ? qk_attn_queries(a->head_dim) : qk_attn_queries_v_is_k(a->head_dim);
    const size_t pad = qk_kv_pad(a->head_dim);
    kv_work w = {
        .a = a, .fk = f, .n = a->n_cols * a->n_heads, .dim = a->head_dim, .pad = pad, .block = a->scratch
    };
    w.fv = a->v ? kv_format_of[a->v_type] : f;
    w.k_bytes = w.fk->tile_bytes(w.dim);
    w.v_bytes = w.fv->tile_bytes(w.dim);
    w.scale = w.block + QK_KV_BLOCK * pad;
    w.scale_v = w.scale + QK_KV_BLOCK;
    w.s = w.scale_v + QK_KV_BLOCK;
    w.lanes = w.s + most * QK_KV_BLOCK;
    w.q = w.lanes + most * 16;
    w.part = w.q + most * pad;
    w.stride = qk_attn_part(a->head_dim);
    w.turn = w.part + 2 * most * w.stride;
    for (size_t i = 0; i < w.n; i++) {
        const size_t at = a->pos + i / a->n_heads;
        w.start[i] = i % a->n_heads ? w.start[i - 1] : qk_kv_first(a, at);
        w.end[i] = i % a->n_heads ? w.end[i - 1] : qk_kv_end(a, at);
    }
    return w;
}

/* Where tile t is: its number in the memory. The tiles of a block may go beyond what is there,
 * where nothing is read. */
static size_t kv_slot(const qk_attn *a, size_t t) {
    if (a->list) return a->list[t < a->n_list ? t : a->n_list - 1].slot;
    return qk_kv_wrap(t * QK_KV_TILE, a->ring) / QK_KV_TILE;
}

/* The same of a list. */
static size_t kv_tile_at(const qk_attn *a, size_t t) {
    return a->where ? a->where[t < a->n_list ? t : a->n_list - 1] : kv_slot(a, t);
}

/* Queries of the group that starts at i. */
static int kv_group(const kv_work *w, size_t i) {
    int n = KV_GROUP;
    while (i + (size_t)n > w->n) n /= 2;
    return n;
}

static const kv_range kv_all = { 0, QK_KV_BLOCK };

/* Bit j is set if position b + j was not evicted. */
static uint64_t kv_kept(const kv_work *w, size_t b) {
    uint64_t bits = 0;
    if (!w->a->list) return UINT64_MAX;
    for (size_t i = 0, e = b / QK_KV_TILE; i < KV_TILES && e + i < w->a->n_list; i++)
        bits |= (uint64_t)w->a->list[e + i].kept << i * QK_KV_TILE;
    return bits;
}

/* Whether every query sees all 64 positions [b, b + 64). */
static int kv_sees_all(const kv_work *w, size_t b) {
    return b + QK_KV_BLOCK <= w->end[0] && w->start[w->n - 1] <= b && kv_kept(w, b) == UINT64_MAX;
}

/* What query i sees of them, from the first to the last. */
static kv_range kv_range_of(const kv_work *w, size_t i, size_t b) {
    const size_t end = w->end[i], start = w->start[i];
    kv_range r = { start > b ? start - b : 0, end > b ? end - b : 0 };
    if (r.hi > QK_KV_BLOCK) r.hi = QK_KV_BLOCK;
    if (r.lo >= r.hi || !w->a->list) return r.lo < r.hi ? r : (kv_range){ 0, 0 };
    const uint64_t bits = kv_kept(w, b) >> r.lo << r.lo & UINT64_MAX >> (QK_KV_BLOCK - r.hi);
    if (bits == 0) return (kv_range){ 0, 0 };
    return (kv_range){ (size_t)__builtin_ctzll(bits), QK_KV_BLOCK - (size_t)__builtin_clzll(bits) };
}

#endif
