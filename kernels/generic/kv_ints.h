/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Scores of packed tiles (kernels/kvpack.h) with integers, and the integers of weights, whose sums are in
 * kv_rows.h, for any vector of v_<isa>.h and lanes_<isa>.h. Queries, and the weights of a block, become
 * integers of 14 bits with a scale: 128 * high + low, high from -64 to 63 and low from 0 to 127, so that no
 * level's dot product overflows; queries of keys with fewer than 8 bits become integers of 8 bits. Sums of
 * integers are exact: no level and no order changes them. */
#ifndef QSF_KERNELS_GENERIC_KV_INTS_H
#define QSF_KERNELS_GENERIC_KV_INTS_H

#include <float.h>

#include "kernels/generic/kv_codes.h"

#define KV_INT_MOST 8127.0f /* 128 * 63 + 63 */

/* The scale of floats whose largest magnitude becomes `most`, and its inverse, by which they are multiplied.
 * By a NaN scale none is a number. */
QK_INLINE float kv_int_scale(uint32_t largest_bits, float most, float *by) {
    const float largest = qk_float_of(largest_bits), inv = largest > 0 ? most / largest : 0;
    *by = inv <= FLT_MAX ? inv : 0; /* denormals are 0 */
    return largest * (1.0f / most);
}

QK_INLINE vi kv_most_bits(const float *x, size_t n) {
    vi bits = v_abs_bits(x);
    for (size_t i = V; i < n; i += V) bits = v_max_bits(bits, v_abs_bits(x + i));
    return bits;
}

QK_INLINE vi kv_rounded(const float *x, float by, float most) {
    const vf v = v_max(v_mul(v_load(x), v_set(by)), v_set(-most)); /* -most also for a NaN */
    return v_whole(v_min(v, v_set(most)));
}

/* Writes the planes of n floats, a multiple of 16; returns sums of the integers. */
QK_INLINE vi kv_to_planes(int8_t *high, int8_t *low, const float *x, size_t n, float by, float most) {
    vi all = l_set(0);
    for (size_t i = 0; i < n; i += V) {
        const vi a = kv_rounded(x + i, by, most);
        v_put_bytes(high + i, l_sar(a, 7));
        v_put_bytes(low + i, l_and(a, l_set(127)));
        all = l_add(all, a);
    }
    return all;
}

/* Writes one plane of n floats, 8 bits each. */
QK_INLINE vi kv_to_bytes(int8_t *plane, const float *x, size_t n, float by) {
    vi all = l_set(0);
    for (size_t i = 0; i < n; i += V) {
        const vi a = kv_rounded(x + i, by, 127.0f);
        v_put_bytes(plane + i, a);
        all = l_add(all, a);
    }
    return all;
}

/* --- K --- */

/* Planes of a query: next to keys of fewer bits, one of 8 bits is precise enough. */
#define KV_PLANES(bits) ((bits) == 8 ? 2 : 1)

/* Queries of a group as integers, in the place of their floats. A plane has the dwords of all queries next to
 * each other, so that their addresses are constants apart. */
typedef struct kv_int {
    float scale;
    int32_t bias; /* kv_bias */
} kv_int;

/* Queries [i, i + nq) are a group. */
QK_INLINE int8_t *kv_query_plane(const kv_work *w, size_t i, size_t nq, int plane) {
    return (int8_t *)(w->q + i * w->pad) + (size_t)plane * nq * w->pad;
}
QK_INLINE kv_int *kv_query_ints(const kv_work *w, size_t i, size_t nq) {
    return (kv_int *)(void *)kv_query_plane(w, i, nq, 2);
}

/* Query r of the group that starts at i: x, which has room for w->pad floats. */
static void kv_pack_ints(const kv_work *w, size_t i, size_t r, size_t nq, float *x) {
    const int bits = w->fk->code_bits;
    /* The sum of 14-bit integers times 128 has to fit 31 bits. */
    const float most = KV_PLANES(bits) == 1 ? 127.0f : w->dim > 2048 ? KV_INT_MOST / 2 : KV_INT_MOST;
    int8_t plane[2][QK_KV_MAX_DIM];
    float by;
    kv_int *to = kv_query_ints(w, i, nq) + r;
    memset(x + w->dim, 0, (w->pad - w->dim) * sizeof *x);
    to->scale = kv_int_scale(v_largest_bits(kv_most_bits(x, w->pad)), most, &by);
    to->bias = kv_bias(bits, v_sum_int(KV_PLANES(bits) == 1
                                           ? kv_to_bytes(plane[0], x, w->pad, by)
                                           : kv_to_planes(plane[0], plane[1], x, w->pad, by, most)));
    for (int p = 0; p < KV_PLANES(bits); p++)
        for (size_t d = 0; d < w->pad; d += 4)
            memcpy(kv_query_plane(w, i, nq, p) + d * nq + 4 * r, plane[p] + d, 4);
}

/* Adds a plane of the nq queries at x times keys of nv vectors of positions, starting at
 * position `at` of the block. */
QK_INLINE void kv_score_plane(int bits, const kv_work *w, const int8_t *x, const kv_tiles *k, size_t at,
                              const char *ahead, int nq, int nv, li acc[KV_GROUP][4]) {
    const size_t elems = qk_kvp_elems(bits), stride = qk_kvp_stride(0, w->dim),
                 step = qk_kvp_words(bits) * stride, groups = qk_kvp_groups(bits, w->dim);
    li sum[KV_GROUP][4]; /* in registers */
    const char *p[4];
    QK_UNROLL for (int v = 0; v < nv; v++) {
        const size_t lane = at + (size_t)v * L;
        p[v] = k->at[lane / QK_KV_TILE] + lane % QK_KV_TILE * sizeof(uint32_t);
        QK_UNROLL for (int r = 0; r < nq; r++) sum[r][v] = acc[r][v];
    }
    for (size_t g = 0; g < groups; g++, x += elems * (size_t)nq) {
        kv_ahead_group(ahead ? ahead + g * step : ahead, qk_kvp_words(bits), stride, nv,
                       qk_kvp_tile_bytes(bits, w->dim));
        QK_UNROLL for (int j = 0; j < (int)elems / 4; j++) {
            li codes[4];
            QK_UNROLL for (int v = 0; v < nv; v++) codes[v] = kv_codes(bits, p[v] + g * step, stride, j);
            QK_UNROLL for (int r = 0; r < nq; r++) {
                const li y = l_dup(x + 4 * (j * nq + r));
                QK_UNROLL for (int v = 0; v < nv; v++) sum[r][v] = kv_dot(bits, sum[r][v], codes[v], y);
            }
        }
    }
    QK_UNROLL for (int r = 0; r < nq; r++) QK_UNROLL for (int v = 0; v < nv; v++) acc[r][v] = sum[r][v];
}

QK_INLINE void kv_score_part_ints(int bits, const kv_work *w, size_t i, const kv_tiles *k, size_t at, int nq,
                                  int nv) {
    const kv_int *of = kv_query_ints(w, i, (size_t)nq);
    const char *ahead = i == 0 ? k->ahead + at / QK_KV_TILE * qk_kvp_tile_bytes(bits, w->dim) : NULL;
    li sum[KV_GROUP][4];
    kv_no_sums(sum, nq, nv);
    for (int p = 0; p < KV_PLANES(bits); p++) {
        kv_next_plane(sum, nq, nv);
        kv_score_plane(bits, w, kv_query_plane(w, i, (size_t)nq, p), k, at, p ? NULL : ahead, nq, nv, sum);
    }
    float *s = w->s + i * QK_KV_BLOCK + at;
    QK_UNROLL for (int r = 0; r < nq; r++) {
        const li bias = l_set(of[r].bias);
        const lf scale = l_setf(of[r].scale);
        QK_UNROLL for (int v = 0; v < nv; v++)
            l_storef(s + r * QK_KV_BLOCK + v * L, l_mulf(l_float(kv_unbias(bits, sum[r][v], bias)), scale));
    }
}

/* Products of queries [i, i + nq) with n tiles of K, without its scales. */
QK_INLINE void kv_score_ints(int bits, const kv_work *w, size_t i, const kv_tiles *k, size_t n, int nq) {
    const size_t wide = (size_t)kv_wide(nq) * L, end = n * QK_KV_TILE;
    size_t at = 0;
    kv_ahead_scales(bits, w->dim, i == 0 ? k->ahead : NULL, n);
    for (; at + wide <= end; at += wide) kv_score_part_ints(bits, w, i, k, at, nq, kv_wide(nq));
    for (; at < end; at += L) kv_score_part_ints(bits, w, i, k, at, nq, 1);
}

/* --- V --- */

/* As qk_kv_rows has them. */
typedef struct kv_weights {
    int8_t high[KV_GROUP][QK_KV_BLOCK], low[KV_GROUP][QK_KV_BLOCK];
    float scale[KV_GROUP];
    int32_t sum[KV_GROUP];
} kv_weights;

/* The weights of nq queries at s, already times the scales of V. One step for all queries after the other,
 * because each of them waits long for its result. */
static void kv_weights_to_ints(kv_weights *to, const float *s, size_t nq) {
    float by[KV_GROUP];
    vi v[KV_GROUP];
    for (size_t r = 0; r < nq; r++) v[r] = kv_most_bits(s + r * QK_KV_BLOCK, QK_KV_BLOCK);
    for (size_t r = 0; r < nq; r++) to->scale[r] = kv_int_scale(v_largest_bits(v[r]), KV_INT_MOST, &by[r]);
    for (size_t r = 0; r < nq; r++)
        v[r] = kv_to_planes(to->high[r], to->low[r], s + r * QK_KV_BLOCK, QK_KV_BLOCK, by[r], KV_INT_MOST);
    for (size_t r = 0; r < nq; r++) to->sum[r] = v_sum_int(v[r]);
}

#define KV_INTS(a, fmt, NAME, bits, latent, dims)                                                    \
    static void kv_##fmt##_scores(const kv_work *w, size_t i, const kv_tiles *k, size_t n, int nq) { \
        KV_INTS_BY(nq, KV_##NAME##_SCORES)                                                           \
    }
#define KV_Q8_SCORES(nq) kv_score_ints(8, w, i, k, n, nq)
#define KV_Q6_SCORES(nq) kv_score_ints(6, w, i, k, n, nq)
#define KV_Q4_SCORES(nq) kv_score_ints(4, w, i, k, n, nq)
#define KV_Q2_SCORES(nq) kv_score_ints(2, w, i, k, n, nq)

#endif
