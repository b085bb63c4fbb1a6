/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q2_0 weights: blocks of 64, x = d * (q - 1). */
#include <string.h>

#include "kernels/act.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

static qk_q2_0 block_at(const uint8_t *w, size_t b) {
    qk_q2_0 blk;
    memcpy(&blk, w + b * sizeof blk, sizeof blk);
    return blk;
}

static int element(const qk_q2_0 *blk, size_t i) { return (blk->qs[i / 4] >> i % 4 * 2 & 3) - 1; }

static float add_block(float acc, const uint8_t *w, const void *col, size_t k, size_t b) {
    const qk_col_q8 c = qk_col_q8_at(col, k);
    const qk_q2_0 blk = block_at(w, 0);
    const float d = qk_f16_to_f32(blk.d);
    for (size_t s = 0; s < QK_Q2_BLOCK / QK_BLOCK; s++) {
        const size_t first = b * QK_Q2_BLOCK + s * QK_BLOCK;
        int isum = 0;
        for (size_t i = 0; i < QK_BLOCK; i++) isum += element(&blk, s * QK_BLOCK + i) * c.q[first + i];
        acc += d * c.d[first / QK_BLOCK] * (float)isum;
    }
    return acc;
}

QK_REF_MATMULS(q2_0, QK_Q2_0, add_block)

void qk_dequant_q2_0_ref(const void *w, float *dst, size_t k) {
    for (size_t b = 0; b < k / QK_Q2_BLOCK; b++) {
        const qk_q2_0 blk = block_at(w, b);
        const float d = qk_f16_to_f32(blk.d);
        for (size_t i = 0; i < QK_Q2_BLOCK; i++) *dst++ = d * (float)element(&blk, i);
    }
}
