/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention over the cached K and V of one KV head: the arguments of the kernels and the scratch memory they
 * need. The order of the arithmetic is in docs/KERNELS.md; it depends on absolute positions only.
 *
 * K and V lie in tiles of 16 positions. A tile of K is transposed, so that a lane of a vector is a position:
 * for each dimension the 16 positions side by side. A tile of V is 16 rows. */
#ifndef QSF_KERNELS_KV_H
#define QSF_KERNELS_KV_H

#include <stddef.h>
#include <stdint.h>

enum {
    QK_KV_TILE = 16,   /* positions of a tile */
    QK_KV_BLOCK = 64,  /* positions between two looks at the running maximum */
    QK_KV_SPAN = 1024, /* positions that are summed by themselves */
    QK_KV_MASS = 1 << 20,
    QK_KV_MAX_DIM = 4096, /* largest head_dim of the types in QK_KV_PACKED */
    QK_KV_PANEL = 64,     /* dimensions of K that are turned into rows at a time, where V is K */
};

/* A tile of a cache that does not hold all positions, or not in order: positions [16 * tile,
 * 16 * tile + 16) are in the slot-th tile of the memory. Bit i of kept is clear if position i of the
 * tile was evicted. */
typedef struct qk_kv_slot {
    uint32_t tile, slot;
    uint16_t kept; /* not 0 */
} qk_kv_slot;

/* How K or V is stored, a row for each type: name, bits of an element, whether caches whose V is K can have
 * it, and of what the dimensions of a head must be a multiple so that fewer bits never take more memory; a is
 * passed on. The packed types (kernels/kvpack.h) have a half-float scale per position, and are rotated first
 * (kernels/kvrotate.h). */
#define QK_KV_TYPES(X, a)    \
    X(a, f32, F32, 32, 1, 1) \
    QK_KV_ROUNDED(X, a)
/* Those that every level stores by itself. */
#define QK_KV_ROUNDED(X, a)  \
    X(a, f16, F16, 16, 1, 1) \
    QK_KV_PACKED(X, a)
#define QK_KV_PACKED(X, a) \
    X(a, q8, Q8, 8, 1, 4)  \
    X(a, q6, Q6, 6, 0, 16) \
    X(a, q4, Q4, 4, 0, 8)  \
    X(a, q2, Q2, 2, 0, 16)

#define QK_KV_ENUM(a, name, NAME, bits, latent, dims) QK_KV_##NAME,
typedef enum qk_kv { QK_KV_TYPES(QK_KV_ENUM, ) QK_KV_N } qk_kv;

/* Queries against one KV head: n_heads heads of each of n_cols columns, at most qk_attn_queries in all, or
 * qk_attn_queries_v_is_k. Column c is position pos + c; it sees itself and the positions before it, the last
 * `window` of these in all, 0 = all. Position p is stored at p, or in a ring at p % ring; what the columns
 * see must not have been overwritten. */
typedef struct qk_attn {
    const void *k, *v;         /* tile 0 of the KV head; v NULL: V is K */
    qk_kv v_type;              /* how V is stored; K as the functions that read it say */
    const float *q;            /* column c, head h at q + c * q_stride + h * head_dim */
    float *y;                  /* the same with y_stride; may be q */
    size_t q_stride, y_stride; /* floats */
    size_t head_dim, n_cols, n_heads;
    size_t pos, window;
    const qk_kv_slot *list; /* (n_list) by ascending tile, the last one that of the last column or later;
                               NULL = every position is at its place */
    size_t n_list;
    size_t ring;  /* positions of the memory, a multiple of QK_KV_BLOCK; 0 = all positions are there */
    size_t chunk; /* a position sees only its own chunk of this many positions; 0 = no chunks */
    float scale;
    float softcap;       /* scores s become softcap * tanh(s / softcap); 0 = none */
    const float *sinks;  /* (n_heads) a logit of each head that only adds to the sum; NULL = none */
    const float *slopes; /* (n_heads) scores change by slope * (position - position of the
                            query); NULL = none */
    uint64_t *mass; /* of a slot's position i at 16 * slot + i: attend adds the weights of columns mass_from
                       and later, of which 1 is QK_KV_MASS; NULL = they are not wanted. Not with a ring */
    size_t mass_from;
    size_t from, to;       /* of what the columns see only positions [from, to); to 0 = all of it */
    const uint32_t *where; /* (n_list) the tile of the memory of each entry; NULL = its slot */
    /* the rest of what the columns see, at most QK_KV_BLOCK positions, stored in another way: the same
     * queries, and no further rest. attend adds it, attend_span reads only what is here; NULL = none */
    const struct qk_attn *recent;
    qk_kv recent_type; /* how its K is stored */
    void *scratch;     /* qk_attn_scratch(head_dim) bytes, or qk_attn_scratch_v_is_k, aligned to 64,
                          worthless afterwards */
} qk_attn;

static inline size_t qk_kv_tiles(size_t n_pos) { return (n_pos + QK_KV_TILE - 1) / QK_KV_TILE; }
static inline size_t qk_kv_wrap(size_t pos, size_t ring) { return ring ? pos % ring : pos; }
static inline size_t qk_kv_spans(size_t n_pos) { return (n_pos + QK_KV_SPAN - 1) / QK_KV_SPAN; }

/* Listed positions are counted in the order of the list: the entry times 16, plus the position in the tile.
 * Returns the number of those before pos; without a list, pos. */
static inline size_t qk_kv_index(const qk_attn *a, size_t pos) {
    size_t lo = 0, hi = a->n_list;
    if (!a->list) return pos;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (a->list[mid].tile < pos / QK_KV_TILE)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo * QK_KV_TILE + (lo < a->n_list && a->list[lo].tile == pos / QK_KV_TILE ? pos % QK_KV_TILE : 0);
}
/* The position that is counted as number x. */
static inline size_t qk_kv_position(const qk_attn *a, size_t x) {
    return a->list ? (size_t)a->list[x / QK_KV_TILE].tile * QK_KV_TILE + x % QK_KV_TILE : x;
}

/* Returns the first number that a query at position `at` sees by window and chunk, and one past the last. */
static inline size_t qk_kv_first(const qk_attn *a, size_t at) {
    const size_t window = a->window && at + 1 > a->window ? at + 1 - a->window : 0;
    const size_t chunk = a->chunk ? at / a->chunk * a->chunk : 0;
    const size_t first = window > chunk ? window : chunk;
    return qk_kv_index(a, first > a->from ? first : a->from);
}
static inline size_t qk_kv_end(const qk_attn *a, size_t at) {
    return a->to && a->to <= at ? qk_kv_index(a, a->to) : qk_kv_index(a, at) + 1;
}

static inline size_t qk_kv_pad(size_t head_dim) { return (head_dim + 15) & ~(size_t)15; }

/* Most queries of one call: as many as fill 16 KiB, a multiple of 8 between 8 and 64. */
static inline size_t qk_attn_queries(size_t head_dim) {
    const size_t n = 4096 / qk_kv_pad(head_dim) & ~(size_t)7;
    return n < 8 ? 8 : n > 64 ? 64 : n;
}

/* The same where V is K: a block is turned into rows for all of them, so they are as many as
 * the second cache holds. */
static inline size_t qk_attn_queries_v_is_k(size_t head_dim) {
    const size_t n = 40960 / qk_kv_pad(head_dim) & ~(size_t)7;
    return n < 8 ? 8 : n > 64 ? 64 : n;
}

/* What a span leaves of a query, in floats: maximum, sum and padding, then head_dim sums and padding. */
static inline size_t qk_attn_part(size_t head_dim) { return 16 + qk_kv_pad(head_dim); }

/* One block of K or V as floats, scales of both; per query its packed elements, scores, lane
 * sums and two parts. */
static inline size_t qk_attn_scratch_of(size_t head_dim, size_t queries) {
    const size_t pad = qk_kv_pad(head_dim), block = QK_KV_BLOCK * (pad + 2);
    return sizeof(float) * (block + queries * (pad + QK_KV_BLOCK + 16 + 2 * qk_attn_part(head_dim)));
}
static inline size_t qk_attn_scratch(size_t head_dim) {
    return qk_attn_scratch_of(head_dim, qk_attn_queries(head_dim));
}

/* The same where V is K, and a panel: some dimensions of a tile of K and, turned, of a block. */
static inline size_t qk_attn_scratch_v_is_k(size_t head_dim) {
    return qk_attn_scratch_of(head_dim, qk_attn_queries_v_is_k(head_dim)) +
           sizeof(float) * QK_KV_PANEL * (QK_KV_TILE + QK_KV_BLOCK);
}

#endif
