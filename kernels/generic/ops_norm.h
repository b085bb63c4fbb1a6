/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Root-mean-square, layer and L2 norm, and what is above the mean, for any vector of v_<isa>.h. Sums use four
 * chains, which hides the latency of the addition. */
#ifndef QSF_KERNELS_GENERIC_OPS_NORM_H
#define QSF_KERNELS_GENERIC_OPS_NORM_H

QK_INLINE vf plus(vf sum, vf x) { return v_add(sum, x); }

QK_INLINE vf plus_square(vf sum, vf x) { return v_fma(x, x, sum); }

/* Sum over x - mean, accumulated by `with`. */
QK_INLINE double sum_of(const float *x, size_t n, float mean, vf (*with)(vf, vf)) {
    const vf m = v_set(mean);
    vf s[4] = { v_set(0), v_set(0), v_set(0), v_set(0) };
    size_t i = 0;
    for (; i + 4 * V <= n; i += 4 * V)
        for (size_t j = 0; j < 4; j++) s[j] = with(s[j], v_sub(v_load(x + i + j * V), m));
    for (; i + V <= n; i += V) s[0] = with(s[0], v_sub(v_load(x + i), m));
    if (i < n) s[1] = with(s[1], v_keep(v_sub(v_load_some(x + i, n - i), m), n - i));
    return (double)v_sum(v_add(v_add(s[0], s[1]), v_add(s[2], s[3])));
}

void QK_FN(rms_norm)(float *y, const float *x, const float *w, size_t n, float eps) {
    const vf r = v_set((float)(1.0 / sqrt(sum_of(x, n, 0.0f, plus_square) / (double)n + (double)eps)));
    size_t i = 0;
    for (; i + V <= n; i += V) v_store(y + i, v_mul(v_mul(v_load(x + i), r), v_load(w + i)));
    if (i < n)
        v_store_some(y + i, n - i, v_mul(v_mul(v_load_some(x + i, n - i), r), v_load_some(w + i, n - i)));
}

void QK_FN(layer_norm)(float *y, const float *x, const float *w, const float *b, size_t n, float eps) {
    const float mean = (float)(sum_of(x, n, 0.0f, plus) / (double)n);
    const double var = sum_of(x, n, mean, plus_square) / (double)n;
    const vf m = v_set(mean), r = v_set((float)(1.0 / sqrt(var + (double)eps))), zero = v_set(0);
    size_t i = 0;
    for (; i + V <= n; i += V) {
        const vf scaled = v_mul(v_mul(v_sub(v_load(x + i), m), r), v_load(w + i));
        v_store(y + i, v_add(scaled, b ? v_load(b + i) : zero));
    }
    if (i < n) {
        const vf scaled = v_mul(v_mul(v_sub(v_load_some(x + i, n - i), m), r), v_load_some(w + i, n - i));
        v_store_some(y + i, n - i, v_add(scaled, b ? v_load_some(b + i, n - i) : zero));
    }
}

void QK_FN(l2_norm)(float *y, const float *x, size_t n, float eps) {
    const vf r = v_set((float)(1.0 / fmax(sqrt(sum_of(x, n, 0.0f, plus_square)), (double)eps)));
    size_t i = 0;
    for (; i + V <= n; i += V) v_store(y + i, v_mul(v_load(x + i), r));
    if (i < n) v_store_some(y + i, n - i, v_mul(v_load_some(x + i, n - i), r));
}

void QK_FN(keep_above)(float *y, size_t n, float deviations) {
    const float mean = (float)(sum_of(y, n, 0.0f, plus) / (double)n);
    const double var = sum_of(y, n, mean, plus_square) / (double)(n - 1);
    const vf cut = v_set((float)((double)mean + (double)deviations * sqrt(var))), zero = v_set(0);
    size_t i = 0;
    for (; i + V <= n; i += V) v_store(y + i, v_max(v_sub(v_load(y + i), cut), zero));
    if (i < n) v_store_some(y + i, n - i, v_max(v_sub(v_load_some(y + i, n - i), cut), zero));
}

#endif
