/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q4_K weights: super-blocks of 256 in eight sub-blocks of 32,
 * x = d * scale * q - dmin * minimum. */
#include <string.h>

#include "kernels/act.h"
#include "kernels/kscale.h"
#include "kernels/ref/ref.h"

static qk_q4_k block_at(const uint8_t *w, size_t b) {
    qk_q4_k blk;
    memcpy(&blk, w + b * sizeof blk, sizeof blk);
    return blk;
}

/* Each 32 bytes hold 64 elements: the low nibbles first, then the high ones. */
static void unpack(const qk_q4_k *blk, uint8_t *q) {
    for (size_t j = 0; j < QK_K / 64; j++)
        for (size_t l = 0; l < 32; l++) {
            q[j * 64 + l] = blk->qs[j * 32 + l] & 15;
            q[j * 64 + 32 + l] = blk->qs[j * 32 + l] >> 4;
        }
}

static float add_block(float acc, const uint8_t *w, const void *col, size_t k, size_t b) {
    const qk_col_q8k c = qk_col_q8k_at(col, k);
    const qk_q4_k blk = block_at(w, 0);
    uint64_t sc, mn;
    uint8_t q[QK_K];
    int isum = 0, msum = 0;
    unpack(&blk, q);
    qk_kscale_unpack(blk.scales, &sc, &mn);
    for (size_t s = 0; s < 8; s++) {
        int sub = 0;
        for (size_t i = s * 32; i < s * 32 + 32; i++) sub += q[i] * c.q[b * QK_K + i];
        isum += sub * (int)(sc >> 8 * s & 63);
        msum += c.sum32[b * 8 + s] * (int)(mn >> 8 * s & 63);
    }
    acc += qk_f16_to_f32(blk.d) * c.d[b] * (float)isum;
    return acc - qk_f16_to_f32(blk.dmin) * c.d[b] * (float)msum;
}

QK_REF_MATMULS(q4_k, QK_Q4_K, add_block)

void qk_dequant_q4_k_ref(const void *w, float *dst, size_t k) {
    for (size_t b = 0; b < k / QK_K; b++) {
        const qk_q4_k blk = block_at(w, b);
        const float d = qk_f16_to_f32(blk.d), dmin = qk_f16_to_f32(blk.dmin);
        uint64_t sc, mn;
        uint8_t q[QK_K];
        unpack(&blk, q);
        qk_kscale_unpack(blk.scales, &sc, &mn);
        for (size_t i = 0; i < QK_K; i++) {
            const float scale = d * (float)(sc >> i / 32 * 8 & 63);
            const float min = dmin * (float)(mn >> i / 32 * 8 & 63);
            *dst++ = scale * (float)q[i] - min;
        }
    }
}
