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

void QK_FN(lerp)(float *y, const float *x, const float *z, const float *w, size_t n) {
    size_t i = 0;
    for (; i + V <= n; i += V) {
        const vf from = v_load(x + i);
        v_store(y + i, v_add(from, v_mul(v_sub(v_load(z + i), from), v_load(w + i))));
    }
    if (i < n) {
        const vf from = v_load_some(x + i, n - i), step = v_sub(v_load_some(z + i, n - i), from);
        v_store_some(y + i, n - i, v_add(from, v_mul(step, v_load_some(w + i, n - i))));
    }
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

#endif
