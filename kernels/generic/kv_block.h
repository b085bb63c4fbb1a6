/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A group of queries against one block of 64 positions, as floats: scores, weights, weighted sums. The number
 * of queries processed together does not change any result: each has its own accumulators. */
#ifndef QSF_KERNELS_GENERIC_KV_BLOCK_H
#define QSF_KERNELS_GENERIC_KV_BLOCK_H

#include "kernels/generic/kv_codes.h"

/* Input of a group of nq queries: lane sums, maximum and so on are per query, at the same index. */
typedef struct kv_range {
    size_t lo, hi; /* positions of the block that are visible to a query */
} kv_range;

enum { KV_TILES = QK_KV_BLOCK / QK_KV_TILE };

/* A block of K or V: its tiles, and in a V tile the bytes of a row and of what is skipped in each. Elements
 * of 4 bytes are floats, of 2 bytes halves. `ahead` is the data needed next. */
typedef struct kv_tiles {
    const char *at[KV_TILES], *ahead;
    size_t row, skip;
} kv_tiles;

QK_INLINE vf kv_take(const char *p, int elem) {
    return elem == 4 ? v_load((const float *)(const void *)p) : v_load_half(p);
}

/* Prefetches n bytes, at most 256. Where floats were made of halves, n is the size of the halves. */
QK_INLINE void kv_ahead(const char *p, size_t n) {
    __builtin_prefetch(p);
    for (size_t i = 64; i < n; i += 64) __builtin_prefetch(p + i);
}

QK_INLINE size_t kv_pace(int nv, int elem) { return (size_t)(nv * V * (elem == 4 ? 2 : elem)); }

/* s[r][p] = sum_i q[i][r] k[i][p], ascending i, for the positions of nv vectors starting at `at`. */
QK_INLINE void kv_score_part(float *s, const float *q, kv_tiles k, size_t dim, size_t at, int nq, int nv,
                             int elem) {
    vf acc[KV_GROUP][4];
    const char *col[4], *ahead = k.ahead + at / (size_t)(nv * V) * dim * kv_pace(nv, elem);
    for (int j = 0; j < nv; j++) {
        const size_t p = at + (size_t)j * V;
        col[j] = k.at[p / QK_KV_TILE] + p % QK_KV_TILE * (size_t)elem;
        for (int r = 0; r < nq; r++) acc[r][j] = v_set(0);
    }
    for (size_t i = 0; i < dim; i++) {
        vf x[4];
        kv_ahead(ahead + i * kv_pace(nv, elem), kv_pace(nv, elem));
        for (int j = 0; j < nv; j++) x[j] = kv_take(col[j] + i * (size_t)(QK_KV_TILE * elem), elem);
        for (int r = 0; r < nq; r++)
            for (int j = 0; j < nv; j++)
                acc[r][j] = v_fma(v_set(q[i * (size_t)nq + (size_t)r]), x[j], acc[r][j]);
    }
    for (int r = 0; r < nq; r++)
        for (int j = 0; j < nv; j++) v_store(s + (size_t)r * QK_KV_BLOCK + at + (size_t)j * V, acc[r][j]);
}

QK_INLINE void kv_score(float *s, const float *q, kv_tiles k, size_t dim, size_t n, int nq, int elem) {
    for (size_t at = 0; at < n; at += (size_t)kv_wide(nq) * V)
        kv_score_part(s, q, k, dim, at, nq, kv_wide(nq), elem);
}

/* acc[r] += sum of p[r][j] v[j] over positions r, ascending, for nv vectors of dimensions. */
QK_INLINE void kv_mix_part(float *acc, size_t stride, const float *p, kv_tiles v, kv_range r, int nq, int nv,
                           int elem) {
    vf sum[KV_GROUP][4];
    for (int q = 0; q < nq; q++)
        for (int j = 0; j < nv; j++) sum[q][j] = v_load(acc + (size_t)q * stride + (size_t)j * V);
    for (size_t at = r.lo, stop; at < r.hi; at = stop) {
        const size_t end = (at / QK_KV_TILE + 1) * QK_KV_TILE;
        const char *row = v.at[at / QK_KV_TILE] + at % QK_KV_TILE * v.row + v.skip;
        stop = end > r.hi ? r.hi : end;
        for (; at < stop; at++, row += v.row) {
            vf x[4];
            kv_ahead(v.ahead + at * kv_pace(nv, elem), kv_pace(nv, elem));
            for (int j = 0; j < nv; j++) x[j] = kv_take(row + j * V * elem, elem);
            for (int q = 0; q < nq; q++)
                for (int j = 0; j < nv; j++)
                    sum[q][j] = v_fma(v_set(p[(size_t)q * QK_KV_BLOCK + at]), x[j], sum[q][j]);
        }
    }
    for (int q = 0; q < nq; q++)
        for (int j = 0; j < nv; j++) v_store(acc + (size_t)q * stride + (size_t)j * V, sum[q][j]);
}

QK_INLINE void kv_mix(float *acc, size_t stride, const float *p, kv_tiles v, size_t pad, kv_range r, int nq,
                      int elem) {
    const size_t step = (size_t)kv_wide(nq) * V;
    size_t i = 0;
    for (; i + step <= pad; i += step) {
        kv_mix_part(acc + i, stride, p, v, r, nq, kv_wide(nq), elem);
        v.skip += step * (size_t)elem;
        v.ahead += QK_KV_BLOCK * kv_pace(kv_wide(nq), elem);
    }
    for (; i < pad; i += V) {
        kv_mix_part(acc + i, stride, p, v, r, nq, 1, elem);
        v.skip += V * (size_t)elem;
    }
}

/* Code for each group size that occurs. */
QK_INLINE void kv_score_n(float *s, const float *q, kv_tiles k, size_t dim, size_t n, int nq, int elem) {
    if (nq == 1)
        kv_score(s, q, k, dim, n, 1, elem);
    else if (nq == 2)
        kv_score(s, q, k, dim, n, 2, elem);
    else if (nq == 4 && KV_GROUP != 4)
        kv_score(s, q, k, dim, n, 4, elem);
    else
        kv_score(s, q, k, dim, n, KV_GROUP, elem);
}

QK_INLINE void kv_mix_n(float *acc, size_t stride, const float *p, kv_tiles v, size_t pad, kv_range r, int nq,
                        int elem) {
    if (nq == 1)
        kv_mix(acc, stride, p, v, pad, r, 1, elem);
    else if (nq == 2)
        kv_mix(acc, stride, p, v, pad, r, 2, elem);
    else if (nq == 4 && KV_GROUP != 4)
        kv_mix(acc, stride, p, v, pad, r, 4, elem);
    else
        kv_mix(acc, stride, p, v, pad, r, KV_GROUP, elem);
}

/* The two element types. */
static void kv_score_4(float *s, const float *q, kv_tiles k, size_t dim, size_t n, int nq) {
    kv_score_n(s, q, k, dim, n, nq, 4);
}

static void kv_score_2(float *s, const float *q, kv_tiles k, size_t dim, size_t n, int nq) {
    kv_score_n(s, q, k, dim, n, nq, 2);
}

static void kv_mix_4(float *acc, size_t stride, const float *p, kv_tiles v, size_t pad, kv_range r, int nq) {
    kv_mix_n(acc, stride, p, v, pad, r, nq, 4);
}

static void kv_mix_2(float *acc, size_t stride, const float *p, kv_tiles v, size_t pad, kv_range r, int nq) {
    kv_mix_n(acc, stride, p, v, pad, r, nq, 2);
}

typedef void (*kv_score_fn)(float *s, const float *q, kv_tiles k, size_t dim, size_t n, int nq);
typedef void (*kv_mix_fn)(float *acc, size_t stride, const float *p, kv_tiles v, size_t pad, kv_range r,
                          int nq);

/* Queries with different ranges: positions visible to all are processed together, those before and after per
 * query. */
static void kv_mix_ranges(float *acc, size_t stride, const float *p, kv_tiles v, size_t pad,
                          const kv_range *r, int nq, kv_mix_fn mix) {
    kv_range all = r[0];
    for (int q = 1; q < nq; q++) {
        all.lo = r[q].lo > all.lo ? r[q].lo : all.lo;
        all.hi = r[q].hi < all.hi ? r[q].hi : all.hi;
    }
    if (all.lo > all.hi) all.lo = all.hi = QK_KV_BLOCK;
    for (int q = 0; q < nq; q++) {
        const kv_range before = { r[q].lo, r[q].hi < all.lo ? r[q].hi : all.lo };
        if (before.lo < before.hi)
            mix(acc + (size_t)q * stride, stride, p + q * QK_KV_BLOCK, v, pad, before, 1);
    }
    if (all.lo < all.hi) mix(acc, stride, p, v, pad, all, nq);
    for (int q = 0; q < nq; q++) {
        const kv_range behind = { r[q].lo > all.hi ? r[q].lo : all.hi, r[q].hi };
        if (behind.lo < behind.hi)
            mix(acc + (size_t)q * stride, stride, p + q * QK_KV_BLOCK, v, pad, behind, 1);
    }
}

#endif
