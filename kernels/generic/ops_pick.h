/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Candidate selection for sampling, and the draw, for any vector of v_<isa>.h: a vocabulary is scanned in
 * vectors, and only candidates are handled one by one. */
#ifndef QSF_KERNELS_GENERIC_OPS_PICK_H
#define QSF_KERNELS_GENERIC_OPS_PICK_H

#include "kernels/pick.h"

enum { PIECES = 1024, GRAIN = 64, NEAR = 8 * 16, CHAINS = 4 };

/* --- the k best --- */

/* The largest of n >= 1 elements, ignoring NaN. */
QK_INLINE float largest_of(const float *x, size_t n) {
    vf a = v_set(-INFINITY), b = a;
    size_t i = 0;
    for (; i + 2 * V <= n; i += 2 * V) {
        a = v_max(v_load(x + i), a);
        b = v_max(v_load(x + i + V), b);
    }
    for (; i + V <= n; i += V) a = v_max(v_load(x + i), a);
    if (i < n) b = v_max(v_load_some_or(x + i, n - i, b), b);
    return v_largest(v_max(a, b));
}

QK_INLINE void offer_all(qk_best *best, const float *x, size_t from, size_t to) {
    size_t i = from;
    for (; i + V <= to; i += V)
        for (unsigned m = v_at_least(v_load(x + i), v_set(best->limit)); m; m &= m - 1) {
            const size_t at = i + (size_t)__builtin_ctz(m);
            if (x[at] >= best->limit) qk_offer(best, x[at], at);
        }
    for (; i < to; i++)
        if (x[i] >= best->limit) qk_offer(best, x[i], i);
}

/* The k largest maxima of the pieces are k distinct elements. So each of the k best elements is at least as
 * large as the smallest of these maxima, and pieces with a smaller maximum are skipped. */
size_t QK_FN(top_k)(qk_pick *out, const float *x, size_t n, size_t k) {
    float largest[PIECES];
    const size_t piece = ((n + PIECES - 1) / PIECES + GRAIN - 1) / GRAIN * GRAIN;
    qk_best top = { out, k < n ? k : n, 0, -INFINITY }, best = top;
    size_t pieces = 0;
    if (top.k == 0) return 0;
    for (size_t i = 0; i < n; i += piece)
        largest[pieces++] = largest_of(x + i, n - i < piece ? n - i : piece);
    if (pieces > top.k) {
        offer_all(&top, largest, 0, pieces);
        best.limit = out[0].x;
    }
    for (size_t c = 0; c < pieces; c++)
        if (largest[c] >= best.limit)
            offer_all(&best, x, c * piece, (c + 1) * piece < n ? (c + 1) * piece : n);
    qk_sort_picks(out, best.n);
    return best.n;
}

/* --- the nucleus --- */

/* Distance below the best, in buckets. NaN is far away. */
QK_INLINE vf depth(vf x, vf max) { return v_mul(v_sub(max, x), v_set(QK_BUCKETS_PER_NAT)); }

/* mass[b]: the sum of p in bucket b < n; mass[n]: in all others. Adjacent elements go to different chains, so
 * that none waits for the store of the previous one. */
QK_INLINE void weigh(double *mass, const float *x, const float *p, size_t n_x, float max, size_t n) {
    double chain[CHAINS][QK_BUCKETS + 1];
    float at[V], far[V];
    vf rest = v_set(0);
    size_t i = 0;
    for (size_t c = 0; c < CHAINS; c++) memset(chain[c], 0, (n + 1) * sizeof chain[c][0]);
    for (; i < n_x; i += V) {
        const size_t some = n_x - i < V ? n_x - i : V;
        const vf d = some == V ? depth(v_load(x + i), v_set(max))
                               : depth(v_load_some(x + i, some), v_set(max));
        if (some == V && v_above(v_set((float)n), d) == 0) {
            rest = v_add(rest, v_load(p + i));
            continue;
        }
        v_store(at, v_min(d, v_set((float)n)));
        for (size_t j = 0; j < some; j++) chain[j % CHAINS][(size_t)at[j]] += (double)p[i + j];
    }
    for (size_t b = 0; b <= n; b++) mass[b] = (chain[0][b] + chain[1][b]) + (chain[2][b] + chain[3][b]);
    v_store(far, rest);
    for (size_t j = 0; j < V; j++) mass[n] += (double)far[j];
}

/* Most of a vocabulary is usually too unlikely for any nucleus, so only the nearest 8 nats are examined
 * first. */
size_t QK_FN(top_p)(qk_pick *out, const float *x, const float *p, size_t n, float max, double top_p,
                    size_t *sure) {
    double mass[QK_BUCKETS + 1];
    size_t front = 0, back = n, buckets = NEAR;
    weigh(mass, x, p, n, max, NEAR);
    size_t last = qk_last_bucket(mass, NEAR, top_p);
    if (last == NEAR) {
        buckets = QK_BUCKETS;
        weigh(mass, x, p, n, max, QK_BUCKETS);
        last = qk_last_bucket(mass, QK_BUCKETS, top_p);
    }
    const float end = last == buckets ? INFINITY : (float)(last + 1);
    for (size_t i = 0; i < n; i += V) {
        const size_t some = n - i < V ? n - i : V;
        float at[V];
        const vf d = some == V ? depth(v_load(x + i), v_set(max))
                               : depth(v_load_some(x + i, some), v_set(max));
        unsigned m = v_at_least(v_set(end), d) & ((1u << some) - 1);
        if (m) v_store(at, d);
        for (; m; m &= m - 1) {
            const size_t j = (size_t)__builtin_ctz(m);
            const qk_pick pick = { x[i + j], (int32_t)(i + j) };
            if (at[j] < (float)last)
                out[front++] = pick;
            else if (at[j] < end || end == INFINITY)
                out[--back] = pick;
        }
    }
    *sure = front;
    memmove(out + front, out + back, (n - back) * sizeof *out);
    qk_sort_picks(out + front, n - back);
    return front + (n - back);
}

size_t QK_FN(at_least)(qk_pick *out, const float *x, size_t n, float limit) {
    size_t kept = 0, i = 0;
    for (; i + V <= n; i += V)
        for (unsigned m = v_at_least(v_load(x + i), v_set(limit)); m; m &= m - 1) {
            const size_t at = i + (size_t)__builtin_ctz(m);
            out[kept++] = (qk_pick){ x[at], (int32_t)at };
        }
    for (; i < n; i++)
        if (x[i] >= limit) out[kept++] = (qk_pick){ x[i], (int32_t)i };
    return kept;
}

/* --- the draw --- */

/* In double and in a fixed order, the same at every level. */
QK_INLINE double sum_of_piece(const float *p, size_t n) {
    double s[8] = { 0 };
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t j = 0; j < 8; j++) s[j] += (double)p[i + j];
    for (; i < n; i++) s[i % 8] += (double)p[i];
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

/* Finds the piece in which the sum passes u, then the element in it. If rounding keeps the sum below u to the
 * end, the result is the last element with p > 0. */
size_t QK_FN(draw)(const float *p, size_t n, double u, double *total) {
    double sums[PIECES], sum = 0;
    const size_t piece = ((n + PIECES - 1) / PIECES + GRAIN - 1) / GRAIN * GRAIN;
    size_t pieces = 0, c = 0, chosen = 0;
    *total = 0;
    for (size_t i = 0; i < n; i += piece) {
        sums[pieces] = sum_of_piece(p + i, n - i < piece ? n - i : piece);
        *total += sums[pieces++];
    }
    const double target = u * *total;
    while (c < pieces && !(sum + sums[c] > target)) sum += sums[c++];
    for (size_t i = c * piece; i < n; i++) {
        if (!(p[i] > 0)) continue;
        chosen = i;
        sum += (double)p[i];
        if (sum > target) return chosen;
    }
    for (size_t i = n; i-- > 0 && chosen == 0;) chosen = p[i] > 0 ? i : 0;
    return chosen;
}

#endif
