/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Softmax for any vector of v_<isa>.h; needs exp.h. */
#ifndef QSF_KERNELS_GENERIC_OPS_SOFTMAX_H
#define QSF_KERNELS_GENERIC_OPS_SOFTMAX_H

/* Ignores NaN, unless x[0] is one. */
QK_INLINE float greatest(const float *x, size_t n) {
    vf max = v_set(x[0]);
    size_t i = 0;
    for (; i + V <= n; i += V) max = v_max(v_load(x + i), max);
    if (i < n) max = v_max(v_load_some_or(x + i, n - i, max), max);
    return v_largest(max);
}

/* exp(z), 0 where z is below QK_SOFTMAX_LOWEST. */
QK_INLINE vf weight_of(vf z) { return v_not_below(v_exp(z), z, QK_SOFTMAX_LOWEST); }

/* y = weight_of(z) with z = (x - max) * inv, at least a little less than the lowest;
 * accumulates y and y * z. */
QK_INLINE void exp_block(float *y, const float *x, size_t n, vf max, vf inv, vf *sum, vf *weighted) {
    const vf low = v_set(QK_SOFTMAX_LOWEST - 1.0f);
    vf s = v_set(0), w = v_set(0);
    size_t i = 0;
    for (; i + V <= n; i += V) {
        const vf z = v_max(low, v_mul(v_sub(v_load(x + i), max), inv)), e = weight_of(z);
        v_store(y + i, e);
        s = v_add(s, e);
        w = v_fma(e, z, w);
    }
    if (i < n) {
        const vf z = v_max(low, v_mul(v_sub(v_load_some(x + i, n - i), max), inv)),
                 e = v_keep(weight_of(z), n - i);
        v_store_some(y + i, n - i, e);
        s = v_add(s, e);
        w = v_fma(e, v_keep(z, n - i), w);
    }
    *sum = v_add(*sum, s);
    *weighted = v_add(*weighted, w);
}

/* See ref/softmax.c for the entropy. In blocks, because a single sum over a vocabulary would lose three
 * digits. */
float QK_FN(softmax_t)(float *y, const float *x, size_t n, float temperature) {
    enum { BLOCK = 64 * V };
    const vf max = v_set(greatest(x, n)), inv = v_set(1.0f / temperature);
    vf sum = v_set(0), weighted = v_set(0);
    for (size_t i = 0; i < n; i += BLOCK)
        exp_block(y + i, x + i, n - i < BLOCK ? n - i : BLOCK, max, inv, &sum, &weighted);
    const float s = v_sum(sum);
    QK_FN(scale)(y, 1.0f / s, n);
    return (float)(log((double)s) - (double)v_sum(weighted) / (double)s);
}

#endif
