/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Candidate selection for sampling, and the draw. */
#include "kernels/pick.h"
#include "kernels/ref/ref.h"

size_t qk_top_k_ref(qk_pick *out, const float *x, size_t n, size_t k) {
    qk_best best = { out, k < n ? k : n, 0, -INFINITY };
    for (size_t i = 0; best.k > 0 && i < n; i++)
        if (x[i] >= best.limit) qk_offer(&best, x[i], i);
    qk_sort_picks(out, best.n);
    return best.n;
}

static size_t bucket_of(float x, float max) {
    const float d = (max - x) * QK_BUCKETS_PER_NAT;
    return d < (float)QK_BUCKETS ? (size_t)d : QK_BUCKETS;
}

size_t qk_top_p_ref(qk_pick *out, const float *x, const float *p, size_t n, float max, double top_p,
                    size_t *sure) {
    double mass[QK_BUCKETS + 1] = { 0 };
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) mass[bucket_of(x[i], max)] += (double)p[i];
    const size_t last = qk_last_bucket(mass, QK_BUCKETS, top_p);
    for (size_t i = 0; i < n; i++)
        if (bucket_of(x[i], max) < last) out[kept++] = (qk_pick){ x[i], (int32_t)i };
    *sure = kept;
    for (size_t i = 0; i < n; i++)
        if (bucket_of(x[i], max) == last) out[kept++] = (qk_pick){ x[i], (int32_t)i };
    qk_sort_picks(out + *sure, kept - *sure);
    return kept;
}

size_t qk_at_least_ref(qk_pick *out, const float *x, size_t n, float limit) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (x[i] >= limit) out[kept++] = (qk_pick){ x[i], (int32_t)i };
    return kept;
}

size_t qk_draw_ref(const float *p, size_t n, double u, double *total) {
    double sum = 0;
    size_t chosen = 0;
    *total = 0;
    for (size_t i = 0; i < n; i++) *total += (double)p[i];
    const double target = u * *total;
    for (size_t i = 0; i < n; i++) {
        if (!(p[i] > 0)) continue;
        chosen = i; /* rounding may leave sum just below target at the end: then the last one is drawn */
        sum += (double)p[i];
        if (sum > target) break;
    }
    return chosen;
}
