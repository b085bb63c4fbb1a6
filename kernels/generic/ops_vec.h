/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plain vector operations for any vector of v_<isa>.h. */
#ifndef QSF_KERNELS_GENERIC_OPS_VEC_H
#define QSF_KERNELS_GENERIC_OPS_VEC_H

void QK_FN(add)(float *y, const float *x, size_t n) {
    size_t i = 0;
    for (; i + V <= n; i += V) v_store(y + i, v_add(v_load(y + i), v_load(x + i)));
    if (i < n) v_store_some(y + i, n - i, v_add(v_load_some(y + i, n - i), v_load_some(x + i, n - i)));
}

void QK_FN(mul)(float *y, const float *x, size_t n) {
    size_t i = 0;
    for (; i + V <= n; i += V) v_store(y + i, v_mul(v_load(y + i), v_load(x + i)));
    if (i < n) v_store_some(y + i, n - i, v_mul(v_load_some(y + i, n - i), v_load_some(x + i, n - i)));
}

void QK_FN(scale)(float *y, float a, size_t n) {
    const vf va = v_set(a);
    size_t i = 0;
    for (; i + V <= n; i += V) v_store(y + i, v_mul(v_load(y + i), va));
    if (i < n) v_store_some(y + i, n - i, v_mul(v_load_some(y + i, n - i), va));
}

/* Finds the largest value, then its first position. */
size_t QK_FN(argmax)(const float *x, size_t n) {
    vf best = v_set(-INFINITY);
    size_t i = 0;
    for (; i + V <= n; i += V)
        best = v_max(v_load(x + i), best); /* in this order a NaN leaves best unchanged */
    if (i < n) best = v_max(v_load_some_or(x + i, n - i, best), best);
    best = v_set(v_largest(best));
    for (i = 0; i + V <= n; i += V) {
        const unsigned at = v_equal(v_load(x + i), best);
        if (at) return i + (size_t)__builtin_ctz(at);
    }
    for (; i < n; i++)
        if (v_equal(v_set(x[i]), best)) return i;
    return 0; /* all elements are NaN */
}

void QK_FN(clamp)(float *y, const float *x, size_t n, float low, float high) {
    const vf lo = v_set(low), hi = v_set(high);
    size_t i = 0;
    for (; i + V <= n; i += V) v_store(y + i, v_min(v_max(v_load(x + i), lo), hi));
    if (i < n) v_store_some(y + i, n - i, v_min(v_max(v_load_some(x + i, n - i), lo), hi));
}

/* Two sums, because one would wait for itself. */
float QK_FN(scan)(float *s, const float *old, const float *b, const float *c, size_t n, float decay,
                  float x) {
    const vf vd = v_set(decay), vx = v_set(x);
    vf sum0 = v_set(0), sum1 = v_set(0);
    size_t i = 0;
    for (; i + 2 * V <= n; i += 2 * V) {
        const vf s0 = v_fma(v_load(old + i), vd, v_mul(v_load(b + i), vx));
        const vf s1 = v_fma(v_load(old + i + V), vd, v_mul(v_load(b + i + V), vx));
        v_store(s + i, s0);
        v_store(s + i + V, s1);
        sum0 = v_fma(s0, v_load(c + i), sum0);
        sum1 = v_fma(s1, v_load(c + i + V), sum1);
    }
    for (; i + V <= n; i += V) {
        const vf s0 = v_fma(v_load(old + i), vd, v_mul(v_load(b + i), vx));
        v_store(s + i, s0);
        sum0 = v_fma(s0, v_load(c + i), sum0);
    }
    if (i < n) {
        const size_t m = n - i;
        const vf s0 = v_fma(v_load_some(old + i, m), vd, v_mul(v_load_some(b + i, m), vx));
        v_store_some(s + i, m, s0);
        sum1 = v_fma(s0, v_load_some(c + i, m), sum1);
    }
    return v_sum(v_add(sum0, sum1));
}

#endif
