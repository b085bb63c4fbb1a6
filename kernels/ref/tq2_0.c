/* SPDX-License-Identifier: GPL-3.0-or-later */
/* TQ2_0 weights: super-blocks of 256 trits in two bits each, x = d * (q - 1). */
#include <string.h>

#include "kernels/act.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

static qk_tq2_0 block_at(const uint8_t *w, size_t b) {
    qk_tq2_0 blk;
    memcpy(&blk, w + b * sizeof blk, sizeof blk);
    return blk;
}

static void unpack(const qk_tq2_0 *blk, int *q) {
    for (size_t i = 0; i < QK_K; i++) q[i] = (blk->qs[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3) - 1;
}

static float add_block(float acc, const uint8_t *w, const void *col, size_t k, size_t b) {
    const qk_col_q8k c = qk_col_q8k_at(col, k);
    const qk_tq2_0 blk = block_at(w, 0);
    int q[QK_K], isum = 0;
    unpack(&blk, q);
    for (size_t i = 0; i < QK_K; i++) isum += q[i] * c.q[b * QK_K + i];
    return acc + qk_f16_to_f32(blk.d) * c.d[b] * (float)isum;
}

QK_REF_MATMULS(tq2_0, QK_TQ2_0, add_block)

void qk_dequant_tq2_0_ref(const void *w, float *dst, size_t k) {
    for (size_t b = 0; b < k / QK_K; b++) {
        const qk_tq2_0 blk = block_at(w, b);
        const float d = qk_f16_to_f32(blk.d);
        int q[QK_K];
        unpack(&blk, q);
        for (size_t i = 0; i < QK_K; i++) *dst++ = d * (float)q[i];
    }
}
