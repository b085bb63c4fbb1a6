/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q6_K weights: super-blocks of 256 in sixteen sub-blocks of 16, x = d * scale * (q - 32). */
#include <string.h>

#include "kernels/act.h"
#include "kernels/ref/ref.h"

static qk_q6_k block_at(const uint8_t *w, size_t b) {
    qk_q6_k blk;
    memcpy(&blk, w + b * sizeof blk, sizeof blk);
    return blk;
}

/* Two halves of 128: four groups of 32 share 64 bytes of nibbles and 32 bytes of upper bit pairs. */
static void unpack(const qk_q6_k *blk, int *q) {
    for (size_t half = 0; half < 2; half++)
        for (size_t l = 0; l < 32; l++) {
            const uint8_t *ql = blk->ql + half * 64 + l;
            const int high = blk->qh[half * 32 + l];
            int *out = q + half * 128 + l;
            out[0] = (ql[0] & 15) | (high & 3) << 4;
            out[32] = (ql[32] & 15) | (high >> 2 & 3) << 4;
            out[64] = ql[0] >> 4 | (high >> 4 & 3) << 4;
            out[96] = ql[32] >> 4 | (high >> 6) << 4;
        }
}

static float add_block(float acc, const uint8_t *w, const void *col, size_t k, size_t b) {
    const qk_col_q8k c = qk_col_q8k_at(col, k);
    const qk_q6_k blk = block_at(w, 0);
    int q[QK_K], isum = 0;
    unpack(&blk, q);
    for (size_t s = 0; s < 16; s++) {
        int sub = 0;
        for (size_t i = s * 16; i < s * 16 + 16; i++) sub += (q[i] - 32) * c.q[b * QK_K + i];
        isum += sub * blk.scales[s];
    }
    return acc + qk_f16_to_f32(blk.d) * c.d[b] * (float)isum;
}

QK_REF_MATMULS(q6_k, QK_Q6_K, add_block)

void qk_dequant_q6_k_ref(const void *w, float *dst, size_t k) {
    for (size_t b = 0; b < k / QK_K; b++) {
        const qk_q6_k blk = block_at(w, b);
        const float d = qk_f16_to_f32(blk.d);
        int q[QK_K];
        unpack(&blk, q);
        for (size_t i = 0; i < QK_K; i++) *dst++ = d * (float)blk.scales[i / 16] * (float)(q[i] - 32);
    }
}
