/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q3_K weights: super-blocks of 256 in sixteen sub-blocks of 16, x = d * scale * (q - 4). */
#include <string.h>

#include "kernels/act.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

static qk_q3_k block_at(const uint8_t *w, size_t b) {
    qk_q3_k blk;
    memcpy(&blk, w + b * sizeof blk, sizeof blk);
    return blk;
}

/* The two low bits are stored as in Q2_K; a byte of hmask has bit 2 of eight elements, 32 apart. */
static void unpack(const qk_q3_k *blk, int *q) {
    for (size_t i = 0; i < QK_K; i++) {
        const int low = blk->qs[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3;
        q[i] = (low | (blk->hmask[i % 32] >> i / 32 & 1) << 2) - 4;
    }
}

/* Eight bytes hold the low nibbles, scales 8-15 in their upper halves; the last four hold two high bits of
 * four scales each. */
static int scale_of(const qk_q3_k *blk, size_t s) {
    const int low = blk->scales[s % 8] >> s / 8 * 4 & 15;
    return (low | (blk->scales[8 + s % 4] >> s / 4 * 2 & 3) << 4) - 32;
}

static float add_block(float acc, const uint8_t *w, const void *col, size_t k, size_t b) {
    const qk_col_q8k c = qk_col_q8k_at(col, k);
    const qk_q3_k blk = block_at(w, 0);
    int q[QK_K], isum = 0;
    unpack(&blk, q);
    for (size_t s = 0; s < 16; s++) {
        int sub = 0;
        for (size_t i = s * 16; i < s * 16 + 16; i++) sub += q[i] * c.q[b * QK_K + i];
        isum += sub * scale_of(&blk, s);
    }
    return acc + qk_f16_to_f32(blk.d) * c.d[b] * (float)isum;
}

QK_REF_MATMULS(q3_k, QK_Q3_K, add_block)

void qk_dequant_q3_k_ref(const void *w, float *dst, size_t k) {
    for (size_t b = 0; b < k / QK_K; b++) {
        const qk_q3_k blk = block_at(w, b);
        const float d = qk_f16_to_f32(blk.d);
        int q[QK_K];
        unpack(&blk, q);
        for (size_t i = 0; i < QK_K; i++) *dst++ = d * (float)scale_of(&blk, i / 16) * (float)q[i];
    }
}
