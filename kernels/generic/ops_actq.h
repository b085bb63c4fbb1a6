/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Quantization of activation columns for any vector of v_<isa>.h; rules in kernels/act.h. The operations and
 * their order are those of ref/actq.c, so the bytes are the same. */
#ifndef QSF_KERNELS_GENERIC_OPS_ACTQ_H
#define QSF_KERNELS_GENERIC_OPS_ACTQ_H

/* Largest magnitude of n elements, a multiple of V; compares bits, as the reference does. */
QK_INLINE float abs_max(const float *x, size_t n) {
    vi max = v_abs_bits(x);
    for (size_t i = V; i < n; i += V) max = v_max_bits(max, v_abs_bits(x + i));
    return qk_float_of(v_largest_bits(max));
}

/* n elements, a multiple of V; returns their sum. With inv 0 all are zero, whatever x holds. */
QK_INLINE int32_t round_block(int8_t *q, const float *x, size_t n, float inv) {
    int32_t sum = 0;
    if (!(inv > 0.0f)) {
        memset(q, 0, n);
        return 0;
    }
    for (size_t i = 0; i < n; i += V)
        sum += v_sum_int(v_store_bytes(q + i, v_mul(v_load(x + i), v_set(inv))));
    return sum;
}

void QK_FN(quantize_q8)(void *dst, const float *x, size_t k) {
    const qk_col_q8 c = qk_col_q8_at(dst, k);
    for (size_t b = 0; b < k / QK_BLOCK; b++) {
        float inv;
        c.d[b] = qk_act_scale(abs_max(x + b * QK_BLOCK, QK_BLOCK), &inv);
        for (size_t s = b * 2; s < b * 2 + 2; s++)
            c.sum16[s] = (int16_t)round_block(c.q + s * 16, x + s * 16, 16, inv);
        c.ds[b] = c.d[b] * (float)qk_col_sum(&c, b);
    }
    memset(c.q + k, 0, qk_pad64(k) - k);
}

void QK_FN(quantize_q8k)(void *dst, const float *x, size_t k) {
    const qk_col_q8k c = qk_col_q8k_at(dst, k);
    for (size_t b = 0; b < k / QK_K; b++) {
        float inv;
        c.d[b] = qk_act_scale(abs_max(x + b * QK_K, QK_K), &inv);
        for (size_t s = b * 16; s < b * 16 + 16; s++)
            c.sum16[s] = (int16_t)round_block(c.q + s * 16, x + s * 16, 16, inv);
        for (size_t s = b * 8; s < b * 8 + 8; s++)
            c.sum32[s] = (int16_t)(c.sum16[2 * s] + c.sum16[2 * s + 1]);
    }
}

#endif
