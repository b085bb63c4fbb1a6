/* SPDX-License-Identifier: GPL-3.0-or-later */
/* I2_32 weights: blocks of 32, x = d * a value of two bits. */
#include <string.h>

#include "kernels/act.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

static qk_i2_32 block_at(const uint8_t *w, size_t b) {
    qk_i2_32 blk;
    memcpy(&blk, w + b * sizeof blk, sizeof blk);
    return blk;
}

static int element(const qk_i2_32 *blk, size_t i) {
    const int q = blk->qs[i / 4] >> i % 4 * 2 & 3;
    return q < 2 ? q - 2 : q - 1;
}

static float add_block(float acc, const uint8_t *w, const void *col, size_t k, size_t b) {
    const qk_col_q8 c = qk_col_q8_at(col, k);
    const qk_i2_32 blk = block_at(w, 0);
    int isum = 0;
    for (size_t i = 0; i < QK_BLOCK; i++) isum += element(&blk, i) * c.q[b * QK_BLOCK + i];
    return acc + qk_f16_to_f32(blk.d) * c.d[b] * (float)isum;
}

QK_REF_MATMULS(i2_32, QK_I2_32, add_block)

void qk_dequant_i2_32_ref(const void *w, float *dst, size_t k) {
    for (size_t b = 0; b < k / QK_BLOCK; b++) {
        const qk_i2_32 blk = block_at(w, b);
        const float d = qk_f16_to_f32(blk.d);
        for (size_t i = 0; i < QK_BLOCK; i++) *dst++ = d * (float)element(&blk, i);
    }
}
