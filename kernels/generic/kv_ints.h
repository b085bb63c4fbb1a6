/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Scores and weighted sums of packed tiles (kernels/kvpack.h) with integers, for any vector of lanes_<isa>.h. Queries, and the
 * weights of a block, become integers of 14 bits with a scale: 128 * high + low, each of 7 bits with sign, so that no
 * level's dot product overflows; queries of keys with fewer than 8 bits become integers of 8 bits. Sums of integers are exact: no level and no order changes them. */
#ifndef QSF_KERNELS_GENERIC_KV_INTS_H
#define QSF_KERNELS_GENERIC_KV_INTS_H

#include <float.h>

#include "kernels/kvpack.h"

/* A query as integers, at most KV_INT_MOST, or 127 in one plane. The planes lie before it, high and low, n bytes each (a multiple of 16). */
typedef struct kv_int {
    float scale;
    int32_t high, low; /* sums of the planes */
} kv_int;

#define KV_INT_MOST 8127.0f /* 128 * 63 + 63 */

/* Floats times what makes the largest of n `most`; by a NaN scale none is a number. */
QK_INLINE float kv_int_scale(const float *x, size_t n, float most, float *by) {
    vi bits = v_abs_bits(x);
    for (size_t i = V; i < n; i += V) bits = v_max_bits(bits, v_abs_bits(x + i));
    const float largest = qk_float_of(v_largest_bits(bits)), inv = largest > 0 ? most / largest : 0;
    *by = inv <= FLT_MAX ? inv : 0; /* denormals are 0 */
    return largest * (1.0f / most);
}

QK_INLINE vi kv_rounded(const float *x, float by, float most) {
    const vf v = v_max(v_mul(v_load(x), v_set(by)), v_set(-most)); /* -most also for a NaN */
    return v_whole(v_min(v, v_set(most)));
}

/* Writes the planes of n floats, a multiple of 16. */
QK_INLINE float kv_to_ints(int8_t *high, int8_t *low, const float *x, size_t n, vi sum[2]) {
    float by;
    const float scale = kv_int_scale(x, n, KV_INT_MOST, &by);
    sum[0] = sum[1] = l_set(0);
    for (size_t i = 0; i < n; i += V) {
        const vi a = kv_rounded(x + i, by, KV_INT_MOST), h = l_sar(l_add(a, l_set(64)), 7),
                 l = l_sub(a, l_shl(h, 7));
        v_put_bytes(high + i, h);
        v_put_bytes(low + i, l);
        sum[0] = l_add(sum[0], h);
        sum[1] = l_add(sum[1], l);
    }
    return scale;
}

/* Writes one plane of n floats, 8 bits each. */
QK_INLINE kv_int kv_to_bytes(int8_t *high, const float *x, size_t n) {
    kv_int r = { 0 };
    float by;
    vi sum = l_set(0);
    r.scale = kv_int_scale(x, n, 127.0f, &by);
    for (size_t i = 0; i < n; i += V) {
        const vi a = kv_rounded(x + i, by, 127.0f);
        v_put_bytes(high + i, a);
        sum = l_add(sum, a);
    }
    r.high = v_sum_int(sum);
    return r;
}

/* The codes of quad j of a group whose words are at w, `stride` bytes apart: four bytes in each lane. */
QK_INLINE li kv_codes(int bits, const char *w, size_t stride, int j) {
    const li first = l_load(w);
    if (bits == 8) return L_BIAS ? first : l_xor(first, l_bytes(128)); /* as l_biased returns them */
    if (bits == 4) return l_and(j ? l_shr(first, 4) : first, l_bytes(15));
    if (bits == 2) return l_and(j ? l_shr(first, 2 * j) : first, l_bytes(3));
    if (j < 3) return l_and(l_load(w + (size_t)j * stride), l_bytes(63));
    const li second = l_load(w + stride), third = l_load(w + 2 * stride);
    return l_or(l_or(l_and(l_shr(first, 6), l_bytes(3)), l_and(l_shr(second, 4), l_bytes(12))),
                l_and(l_shr(third, 2), l_bytes(48)));
}

QK_INLINE li kv_dot(int bits, li sum, li codes, li x) {
    return bits == 8 ? l_dot_signed(sum, codes, x) : l_dot(sum, codes, x);
}

/* A sum of products with codes becomes one with the numbers that they are; of: the sum of the other factors. */
QK_INLINE li kv_unbias(int bits, li sum, int32_t of) {
    if (bits == 2) return l_sub(l_add(sum, sum), l_set(3 * of));
    return l_sub(sum, l_set((bits == 8 ? L_BIAS : 1 << (bits - 1)) * of));
}

QK_INLINE lf kv_of_ints(int bits, li high, li low, const kv_int *x, int planes) {
    const lf h = l_float(kv_unbias(bits, high, x->high));
    if (planes == 1) return l_mulf(h, l_setf(x->scale));
    const lf l = l_float(kv_unbias(bits, low, x->low));
    return l_mulf(l_addf(l_mulf(h, l_setf(128.0f)), l), l_setf(x->scale));
}

/* Prefetches a group of nv vectors, `apart` bytes from each other, of what is needed next; at NULL nothing. A few lines in
 * each step: the first cache waits for only about 24 at a time. */
QK_INLINE void kv_ahead_group(const char *at, size_t words, size_t stride, int nv, size_t apart) {
    if (!at) return;
    QK_UNROLL for (int v = 0; v < nv; v++) for (size_t i = 0; i < words; i++)
        __builtin_prefetch(at + (size_t)v * apart + i * stride);
}

/* The same of the scales of n tiles. */
QK_INLINE void kv_ahead_scales(int bits, const kv_work *w, size_t i, const char *ahead, size_t n) {
    const size_t bytes = qk_kvp_tile_bytes(bits, w->dim), codes = qk_kvp_bytes(bits, w->dim);
    for (size_t t = 0; i == 0 && t < n; t++) __builtin_prefetch(ahead + t * bytes + codes);
}

/* --- K --- */

/* Planes of a query: next to keys of fewer bits, one of 8 bits is precise enough. */
#define KV_PLANES(bits) ((bits) == 8 ? 2 : 1)

/* Query i as integers, in the place of its floats. */
QK_INLINE int8_t *kv_query_planes(const kv_work *w, size_t i) { return (int8_t *)(w->q + i * w->pad); }
QK_INLINE kv_int *kv_query_int(const kv_work *w, size_t i) {
    return (kv_int *)(void *)(kv_query_planes(w, i) + 2 * w->pad);
}

static void kv_pack_ints(const kv_work *w, size_t i, float *x, int n_planes) {
    int8_t *planes = kv_query_planes(w, i);
    memset(x + w->dim, 0, (w->pad - w->dim) * sizeof *x);
    if (n_planes == 1) {
        *kv_query_int(w, i) = kv_to_bytes(planes, x, w->pad);
        return;
    }
    vi sum[2];
    kv_int *to = kv_query_int(w, i);
    to->scale = kv_to_ints(planes, planes + w->pad, x, w->pad, sum);
    to->high = v_sum_int(sum[0]);
    to->low = v_sum_int(sum[1]);
}

/* What a plane of the queries from i on adds up with keys of nv vectors of positions, from position `at` of the block on. */
QK_INLINE void kv_score_plane(int bits, const kv_work *w, const int8_t *x, const kv_tiles *k, size_t at,
                              const char *ahead, int nq, int nv, li acc[KV_GROUP][4]) {
    const size_t elems = qk_kvp_elems(bits), stride = qk_kvp_stride(0, w->dim),
                 step = qk_kvp_words(bits) * stride, groups = qk_kvp_groups(bits, w->dim),
                 next = w->pad * sizeof(float);
    li sum[KV_GROUP][4]; /* in registers */
    const char *p[4];
    QK_UNROLL for (int v = 0; v < nv; v++) {
        const size_t lane = at + (size_t)v * L;
        p[v] = k->at[lane / QK_KV_TILE] + lane % QK_KV_TILE * sizeof(uint32_t);
        QK_UNROLL for (int r = 0; r < nq; r++) sum[r][v] = l_set(0);
    }
    for (size_t g = 0; g < groups; g++, x += elems) {
        kv_ahead_group(ahead ? ahead + g * step : ahead, qk_kvp_words(bits), stride, nv,
                       qk_kvp_tile_bytes(bits, w->dim));
        QK_UNROLL for (int j = 0; j < (int)elems / 4; j++) {
            li codes[4];
            QK_UNROLL for (int v = 0; v < nv; v++) codes[v] = kv_codes(bits, p[v] + g * step, stride, j);
            QK_UNROLL for (int r = 0; r < nq; r++) {
                const li y = l_dup(x + 4 * (size_t)j + (size_t)r * next);
                QK_UNROLL for (int v = 0; v < nv; v++) sum[r][v] = kv_dot(bits, sum[r][v], codes[v], y);
            }
        }
    }
    QK_UNROLL for (int r = 0; r < nq; r++) QK_UNROLL for (int v = 0; v < nv; v++) acc[r][v] = sum[r][v];
}

QK_INLINE void kv_score_part_ints(int bits, const kv_work *w, size_t i, const kv_tiles *k, size_t at, int nq,
                                  int nv) {
    const int8_t *x = kv_query_planes(w, i);
    const char *ahead = i == 0 ? k->ahead + at / QK_KV_TILE * qk_kvp_tile_bytes(bits, w->dim) : NULL;
    li high[KV_GROUP][4], low[KV_GROUP][4];
    kv_score_plane(bits, w, x, k, at, ahead, nq, nv, high);
    if (KV_PLANES(bits) == 2) kv_score_plane(bits, w, x + w->pad, k, at, NULL, nq, nv, low);
    for (int r = 0; r < nq; r++)
        for (int v = 0; v < nv; v++)
            l_storef(w->s + (i + (size_t)r) * QK_KV_BLOCK + at + (size_t)v * L,
                     kv_of_ints(bits, high[r][v], KV_PLANES(bits) == 2 ? low[r][v] : high[r][v],
                                kv_query_int(w, i + (size_t)r), KV_PLANES(bits)));
}

/* Products of queries [i, i + nq) with n tiles of K, without its scales. */
QK_INLINE void kv_score_ints(int bits, const kv_work *w, size_t i, const kv_tiles *k, size_t n, int nq) {
    const size_t wide = (size_t)kv_wide(nq) * L, end = n * QK_KV_TILE;
    size_t at = 0;
    kv_ahead_scales(bits, w, i, k->ahead, n);
    for (; at + wide <= end; at += wide) kv_score_part_ints(bits, w, i, k, at, nq, kv_wide(nq));
    for (; at < end; at += L) kv_score_part_ints(bits, w, i, k, at, nq, 1);
}

/* --- V --- */

typedef struct kv_weights {
    int8_t high[KV_GROUP][QK_KV_BLOCK], low[KV_GROUP][QK_KV_BLOCK];
    float scale[KV_GROUP];
    int32_t sum[KV_GROUP]; /* of 128 * high + low */
} kv_weights;

/* The weights of query i at the positions that it sees, times the scales of V. */
QK_INLINE void kv_weight_ints(const kv_work *w, kv_weights *to, size_t r, size_t i, kv_range range) {
    float s[QK_KV_BLOCK];
    const float *p = w->s + i * QK_KV_BLOCK;
    for (size_t j = 0; j < QK_KV_BLOCK; j += V) {
        /* The scale of what is not seen, which weighs 0, may be anything, also a NaN. */
        const vf weight = v_load(p + j);
        v_store(s + j, v_mul(weight, v_where(weight, v_load(w->scale + j))));
    }
    for (size_t j = 0; j < range.lo; j++) s[j] = 0;
    for (size_t j = range.hi; j < QK_KV_BLOCK; j++) s[j] = 0;
    vi sum[2];
    to->scale[r] = kv_to_ints(to->high[r], to->low[r], s, QK_KV_BLOCK, sum);
    to->sum[r] = v_sum_int(l_add(l_shl(sum[0], 7), sum[1]));
}

/* What a plane of weights adds up with nv vectors of dimensions, from d on, of n tiles of V; `some`: of so many dimensions, in
 * one vector. */
QK_INLINE void kv_mix_plane(int bits, const kv_work *w, const int8_t *x, const kv_tiles *k, size_t n,
                            const char *ahead, size_t d, int nq, int nv, size_t some, li acc[KV_GROUP][4]) {
    const size_t elems = qk_kvp_elems(bits), words = qk_kvp_words(bits), stride = qk_kvp_stride(1, w->dim);
    li sum[KV_GROUP][4]; /* in registers */
    uint32_t copy[3][L] = { { 0 } };
    QK_UNROLL for (int r = 0; r < nq; r++) QK_UNROLL for (int v = 0; v < nv; v++) sum[r][v] = l_set(0);
    for (size_t t = 0; t < n; t++) {
        const char *p = k->at[t] + d * sizeof(uint32_t);
        for (size_t g = 0; g < QK_KV_TILE / elems; g++, p += words * stride, x += elems) {
            kv_ahead_group(ahead ? ahead + t * qk_kvp_tile_bytes(bits, w->dim) + g * words * stride : ahead,
                           words, stride, nv, sizeof(li));
            for (size_t i = 0; some && i < words; i++)
                memcpy(copy[i], p + i * stride, some * sizeof(uint32_t));
            QK_UNROLL for (int j = 0; j < (int)elems / 4; j++) {
                li codes[4];
                QK_UNROLL for (int v = 0; v < nv; v++)
                    codes[v] = some ? kv_codes(bits, (const char *)copy, sizeof copy[0], j)
                                    : kv_codes(bits, p + (size_t)v * L * sizeof(uint32_t), stride, j);
                QK_UNROLL for (int r = 0; r < nq; r++) {
                    const li y = l_dup(x + 4 * (size_t)j + (size_t)r * QK_KV_BLOCK);
                    QK_UNROLL for (int v = 0; v < nv; v++) sum[r][v] = kv_dot(bits, sum[r][v], codes[v], y);
                }
            }
        }
    }
    QK_UNROLL for (int r = 0; r < nq; r++) QK_UNROLL for (int v = 0; v < nv; v++) acc[r][v] = sum[r][v];
}

QK_INLINE void kv_mix_part_ints(int bits, const kv_work *w, size_t i, const kv_tiles *v, size_t n,
                                const kv_weights *x, size_t d, int nq, int nv, size_t some) {
    li high[KV_GROUP][4], low[KV_GROUP][4];
    kv_mix_plane(bits, w, x->high[0], v, n, i == 0 ? v->ahead + d * sizeof(uint32_t) : NULL, d, nq, nv, some,
                 high);
    kv_mix_plane(bits, w, x->low[0], v, n, NULL, d, nq, nv, some, low);
    for (int r = 0; r < nq; r++)
        for (int k = 0; x->scale[r] != 0.0f && k < nv; k++) {
            /* at most 2^8 * 2^13 * QK_KV_BLOCK */
            const li sum = kv_unbias(bits, l_add(l_shl(high[r][k], 7), low[r][k]), x->sum[r]);
            float *acc = w->part + (i + (size_t)r) * w->stride + 16 + d + (size_t)k * L;
            l_storef(acc, l_addf(l_loadf(acc), l_mulf(l_float(sum), l_setf(x->scale[r]))));
        }
}

/* Adds the rows of n tiles of V. */
QK_INLINE void kv_mix_ints(int bits, const kv_work *w, size_t i, const kv_tiles *v, size_t n,
                           const kv_weights *x, int nq) {
    const size_t wide = (size_t)kv_wide(nq) * L;
    size_t d = 0;
    kv_ahead_scales(bits, w, i, v->ahead, n);
    for (; d + wide <= w->dim; d += wide) kv_mix_part_ints(bits, w, i, v, n, x, d, nq, kv_wide(nq), 0);
    for (; d + L <= w->dim; d += L) kv_mix_part_ints(bits, w, i, v, n, x, d, nq, 1, 0);
    if (d < w->dim) kv_mix_part_ints(bits, w, i, v, n, x, d, nq, 1, w->dim - d);
}

/* One function for each group size that occurs. */
#define KV_INTS_BY(nq, call) \
    switch (nq) {            \
    case 1: call(1); break;  \
    case 2: call(2); break;  \
    case 4: call(4); break;  \
    default: call(KV_GROUP); \
    }

#define KV_INTS(a, fmt, NAME, bits, latent, dims)                                                    \
    static void kv_##fmt##_scores(const kv_work *w, size_t i, const kv_tiles *k, size_t n, int nq) { \
        KV_INTS_BY(nq, KV_##NAME##_SCORES)                                                           \
    }                                                                                                \
    static void kv_##fmt##_rows(const kv_work *w, size_t i, const kv_tiles *v, size_t n,             \
                                const kv_weights *x, int nq) {                                       \
        KV_INTS_BY(nq, KV_##NAME##_ROWS)                                                             \
    }
#define KV_Q8_SCORES(nq) kv_score_ints(8, w, i, k, n, nq)
#define KV_Q8_ROWS(nq)   kv_mix_ints(8, w, i, v, n, x, nq)
#define KV_Q6_SCORES(nq) kv_score_ints(6, w, i, k, n, nq)
#define KV_Q4_SCORES(nq) kv_score_ints(4, w, i, k, n, nq)
#define KV_Q6_ROWS(nq)   kv_mix_ints(6, w, i, v, n, x, nq)
#define KV_Q4_ROWS(nq)   kv_mix_ints(4, w, i, v, n, x, nq)
#define KV_Q2_SCORES(nq) kv_score_ints(2, w, i, k, n, nq)
#define KV_Q2_ROWS(nq)   kv_mix_ints(2, w, i, v, n, x, nq)

#endif
