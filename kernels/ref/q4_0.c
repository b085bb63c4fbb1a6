/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q4_0 weights: blocks of 32, x = d * (q - 8). */
#include <string.h>

#include "kernels/act.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

static qk_q4_0 block_at(const uint8_t *w, size_t b) {
    qk_q4_0 blk;
    memcpy(&blk, w + b * sizeof blk, sizeof blk);
    return blk;
}

static void unpack(const qk_q4_0 *blk, int *q) {
    for (int i = 0; i < QK_BLOCK / 2; i++) {
        q[i] = blk->qs[i] & 15;
        q[i + QK_BLOCK / 2] = blk->qs[i] >> 4;
    }
}

static float add_block(float acc, const uint8_t *w, const void *col, size_t k, size_t b) {
    const qk_col_q8 c = qk_col_q8_at(col, k);
    const qk_q4_0 blk = block_at(w, 0);
    int q[QK_BLOCK], isum = 0;
    unpack(&blk, q);
    for (int i = 0; i < QK_BLOCK; i++) isum += q[i] * c.q[b * QK_BLOCK + (size_t)i];
    return acc + qk_f16_to_f32(blk.d) * c.d[b] * (float)(isum - 8 * qk_col_sum(&c, b));
}

QK_REF_MATMULS(q4_0, QK_Q4_0, add_block)

void qk_dequant_q4_0_ref(const void *w, float *dst, size_t k) {
    for (size_t b = 0; b < k / QK_BLOCK; b++) {
        const qk_q4_0 blk = block_at(w, b);
        const float d = qk_f16_to_f32(blk.d);
        int q[QK_BLOCK];
        unpack(&blk, q);
        for (int i = 0; i < QK_BLOCK; i++) *dst++ = d * (float)(q[i] - 8);
    }
}
