/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Residual streams that predict each other, for any vector of v_<isa>.h. */
#ifndef QSF_KERNELS_GENERIC_OPS_STREAMS_H
#define QSF_KERNELS_GENERIC_OPS_STREAMS_H

QK_INLINE vf load_up_to(const float *p, size_t n) { return n == V ? v_load(p) : v_load_some(p, n); }

/* One vector of each of n streams. */
QK_INLINE void mix_one(float *y, const float *coef, size_t n, size_t stride) {
    vf in[QK_MAX_STREAMS];
    for (size_t j = 0; j < n; j++) in[j] = v_load(y + j * stride);
    for (size_t i = 0; i < n; i++) {
        vf sum = in[i];
        for (size_t j = 0; j < n; j++) sum = v_add(sum, v_mul(v_set(coef[i * n + j]), in[j]));
        v_store(y + i * stride, sum);
    }
}

/* The same of the last `some` elements. */
QK_INLINE void mix_some(float *y, const float *coef, size_t n, size_t stride, size_t some) {
    vf in[QK_MAX_STREAMS];
    for (size_t j = 0; j < n; j++) in[j] = v_load_some(y + j * stride, some);
    for (size_t i = 0; i < n; i++) {
        vf sum = in[i];
        for (size_t j = 0; j < n; j++) sum = v_add(sum, v_mul(v_set(coef[i * n + j]), in[j]));
        v_store_some(y + i * stride, some, sum);
    }
}

void QK_FN(mix_streams)(float *y, const float *coef, size_t n, size_t stride, size_t width) {
    size_t e = 0;
    for (; n == 4 && e + V <= width; e += V) mix_one(y + e, coef, 4, stride); /* Gemma 3n: in registers */
    for (; e + V <= width; e += V) mix_one(y + e, coef, n, stride);
    if (e < width) mix_some(y + e, coef, n, stride, width - e);
}

void QK_FN(correct_streams)(float *y, const float *x, const float *coef, size_t n, size_t stride,
                            size_t width) {
    for (size_t e = 0; e < width; e += V) {
        const size_t some = width - e < V ? width - e : V;
        const vf missed = v_sub(load_up_to(x + e, some), load_up_to(y + e, some));
        for (size_t i = 0; i < n; i++) {
            float *at = y + i * stride + e;
            const vf now = v_add(load_up_to(at, some), v_mul(missed, v_set(1.0f + coef[i])));
            if (some == V)
                v_store(at, now);
            else
                v_store_some(at, some, now);
        }
    }
}

#endif
