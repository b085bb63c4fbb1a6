/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q2_K weights: super-blocks of 256 in sixteen sub-blocks of 16, x = d * scale * q - dmin * minimum. */
#include <string.h>

#include "kernels/act.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

static qk_q2_k block_at(const uint8_t *w, size_t b) {
    qk_q2_k blk;
    memcpy(&blk, w + b * sizeof blk, sizeof blk);
    return blk;
}

/* Each 32 bytes hold four groups of 32 elements; each group has two bits of each byte. */
static void unpack(const qk_q2_k *blk, int *q) {
    for (size_t i = 0; i < QK_K; i++) q[i] = blk->qs[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3;
}

static float add_block(float acc, const uint8_t *w, const void *col, size_t k, size_t b) {
    const qk_col_q8k c = qk_col_q8k_at(col, k);
    const qk_q2_k blk = block_at(w, 0);
    int q[QK_K], isum = 0, msum = 0;
    unpack(&blk, q);
    for (size_t s = 0; s < 16; s++) {
        int sub = 0;
        for (size_t i = s * 16; i < s * 16 + 16; i++) sub += q[i] * c.q[b * QK_K + i];
        isum += sub * (blk.scales[s] & 15);
        msum += c.sum16[b * 16 + s] * (blk.scales[s] >> 4);
    }
    acc += qk_f16_to_f32(blk.d) * c.d[b] * (float)isum;
    return acc - qk_f16_to_f32(blk.dmin) * c.d[b] * (float)msum;
}

QK_REF_MATMULS(q2_k, QK_Q2_K, add_block)

void qk_dequant_q2_k_ref(const void *w, float *dst, size_t k) {
    for (size_t b = 0; b < k / QK_K; b++) {
        const qk_q2_k blk = block_at(w, b);
        const float d = qk_f16_to_f32(blk.d), dmin = qk_f16_to_f32(blk.dmin);
        int q[QK_K];
        unpack(&blk, q);
        for (size_t i = 0; i < QK_K; i++) {
            const int s = blk.scales[i / 16];
            *dst++ = d * (float)(s & 15) * (float)q[i] - dmin * (float)(s >> 4);
        }
    }
}
