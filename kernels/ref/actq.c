/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Quantization of activation columns; layouts and rules in kernels/act.h. */
#include <math.h>
#include <string.h>

#include "kernels/act.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

size_t qk_act_bytes(qk_act act, size_t k) {
    if (act == QK_ACT_Q8) return qk_pad64(k) + 3 * qk_pad64(k / QK_BLOCK * sizeof(float));
    if (act == QK_ACT_Q8K)
        return qk_pad64(k) + qk_pad64(k / QK_K * sizeof(float)) + qk_pad64(k / QK_K * 16) +
               qk_pad64(k / QK_K * 32);
    return qk_pad64(k * sizeof(float));
}

/* Largest magnitude; compares bits, because as bits an infinity or a NaN is larger than any number. */
static float abs_max(const float *x, size_t n) {
    uint32_t max = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t a = qk_bits_of(x[i]) & 0x7fffffffu;
        max = a > max ? a : max;
    }
    return qk_float_of(max);
}

static int round_block(int8_t *q, const float *x, size_t n, float inv) {
    int sum = 0;
    for (size_t i = 0; i < n; i++) {
        q[i] = inv > 0.0f ? (int8_t)lrintf(x[i] * inv) : 0;
        sum += q[i];
    }
    return sum;
}

void qk_quantize_f32_ref(void *dst, const float *x, size_t k) { memcpy(dst, x, k * sizeof *x); }

void qk_quantize_q8_ref(void *dst, const float *x, size_t k) {
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

void qk_quantize_q8k_ref(void *dst, const float *x, size_t k) {
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
