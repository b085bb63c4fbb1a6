/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A group of queries against one block of 64 positions, as floats: scores, weights, weighted sums. How many queries
 * stand in registers at a time does not matter to any of them: each has its own chains. */
#ifndef QSF_KERNELS_GENERIC_KV_BLOCK_H
#define QSF_KERNELS_GENERIC_KV_BLOCK_H

/* Queries of a whole group. A vector of 16 lanes comes with 32 registers. */
enum { KV_GROUP = V == 16 ? 8 : 4, KV_CHAINS = 2 * KV_GROUP };

/* What a group of nq queries is given: lane sums, maximum and so on are per query, at the same index. */
typedef struct kv_range {
    size_t lo, hi; /* positions of the block that a query sees */
} kv_range;

/* Vectors of positions, or of dimensions, that nq queries take at a time: as many chains as hide the latency. */
QK_INLINE int kv_wide(int nq)
{
    const int n = KV_CHAINS / nq;
    return n > 4 ? 4 : n;
}

/* s[r][p] = sum_i q[i][r] k[i][p], ascending i, for the positions of nv vectors from at on; k in tiles. */
QK_INLINE void kv_score_part(float *s, const float *q, const float *k, size_t dim, size_t at, int nq, int nv)
{
    vf acc[KV_GROUP][4];
    const float *col[4];
    for (int j = 0; j < nv; j++) {
        const size_t p = at + (size_t)j * V;
        col[j] = k + p / QK_KV_TILE * QK_KV_TILE * dim + p % QK_KV_TILE;
        for (int r = 0; r < nq; r++)
            acc[r][j] = v_set(0);
    }
    for (size_t i = 0; i < dim; i++) {
        vf x[4];
        for (int j = 0; j < nv; j++)
            x[j] = v_load(col[j] + i * QK_KV_TILE);
        for (int r = 0; r < nq; r++)
            for (int j = 0; j < nv; j++)
                acc[r][j] = v_fma(v_set(q[i * (size_t)nq + (size_t)r]), x[j], acc[r][j]);
    }
    for (int r = 0; r < nq; r++)
        for (int j = 0; j < nv; j++)
            v_store(s + (size_t)r * QK_KV_BLOCK + at + (size_t)j * V, acc[r][j]);
}

QK_INLINE void kv_score(float *s, const float *q, const float *k, size_t dim, size_t n, int nq)
{
    for (size_t at = 0; at < n; at += (size_t)kv_wide(nq) * V)
        kv_score_part(s, q, k, dim, at, nq, kv_wide(nq));
}

/* acc[r] += sum of p[r][j] v[j] over positions [r0, r1), ascending, for nv vectors of dimensions. */
QK_INLINE void kv_mix_part(float *acc, size_t stride, const float *p, const float *v, size_t pad, kv_range r, int nq,
                           int nv)
{
    vf sum[KV_GROUP][4];
    for (int q = 0; q < nq; q++)
        for (int j = 0; j < nv; j++)
            sum[q][j] = v_load(acc + (size_t)q * stride + (size_t)j * V);
    for (size_t at = r.lo; at < r.hi; at++) {
        vf x[4];
        for (int j = 0; j < nv; j++)
            x[j] = v_load(v + at * pad + (size_t)j * V);
        for (int q = 0; q < nq; q++)
            for (int j = 0; j < nv; j++)
                sum[q][j] = v_fma(v_set(p[(size_t)q * QK_KV_BLOCK + at]), x[j], sum[q][j]);
    }
    for (int q = 0; q < nq; q++)
        for (int j = 0; j < nv; j++)
            v_store(acc + (size_t)q * stride + (size_t)j * V, sum[q][j]);
}

QK_INLINE void kv_mix(float *acc, size_t stride, const float *p, const float *v, size_t pad, kv_range r, int nq)
{
    const size_t step = (size_t)kv_wide(nq) * V;
    size_t i = 0;
    for (; i + step <= pad; i += step)
        kv_mix_part(acc + i, stride, p, v + i, pad, r, nq, kv_wide(nq));
    for (; i < pad; i += V)
        kv_mix_part(acc + i, stride, p, v + i, pad, r, nq, 1);
}

/* The groups that occur, each a function of its own. */
static void kv_score_n(float *s, const float *q, const float *k, size_t dim, size_t n, int nq)
{
    switch (nq) {
    case 1: kv_score(s, q, k, dim, n, 1); break;
    case 2: kv_score(s, q, k, dim, n, 2); break;
    case 4: kv_score(s, q, k, dim, n, 4); break;
    default: kv_score(s, q, k, dim, n, KV_GROUP); break;
    }
}

static void kv_mix_n(float *acc, size_t stride, const float *p, const float *v, size_t pad, kv_range r, int nq)
{
    if (r.lo >= r.hi)
        return;
    switch (nq) {
    case 1: kv_mix(acc, stride, p, v, pad, r, 1); break;
    case 2: kv_mix(acc, stride, p, v, pad, r, 2); break;
    case 4: kv_mix(acc, stride, p, v, pad, r, 4); break;
    default: kv_mix(acc, stride, p, v, pad, r, KV_GROUP); break;
    }
}

/* Queries whose ranges differ: what all see in one go, before and behind it each by itself. */
static void kv_mix_ranges(float *acc, size_t stride, const float *p, const float *v, size_t pad, const kv_range *r,
                          int nq)
{
    kv_range all = r[0];
    for (int q = 1; q < nq; q++) {
        all.lo = r[q].lo > all.lo ? r[q].lo : all.lo;
        all.hi = r[q].hi < all.hi ? r[q].hi : all.hi;
    }
    if (all.lo > all.hi)
        all.lo = all.hi = QK_KV_BLOCK;
    for (int q = 0; q < nq; q++) {
        const kv_range before = { r[q].lo, r[q].hi < all.lo ? r[q].hi : all.lo };
        kv_mix_n(acc + (size_t)q * stride, stride, p + q * QK_KV_BLOCK, v, pad, before, 1);
    }
    kv_mix_n(acc, stride, p, v, pad, all, nq);
    for (int q = 0; q < nq; q++) {
        const kv_range behind = { r[q].lo > all.hi ? r[q].lo : all.hi, r[q].hi };
        kv_mix_n(acc + (size_t)q * stride, stride, p + q * QK_KV_BLOCK, v, pad, behind, 1);
    }
}

#endif
