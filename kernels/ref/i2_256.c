/* SPDX-License-Identifier: GPL-3.0-or-later */
/* I2_256 weights: blocks of 256, x = a value of two bits. */
#include <string.h>

#include "kernels/act.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

static qk_i2_256 block_at(const uint8_t *w, size_t b) {
    qk_i2_256 blk;
    memcpy(&blk, w + b * sizeof blk, sizeof blk);
    return blk;
}

static int element(const qk_i2_256 *blk, size_t i) {
    const int q = blk->qs[i / 4] >> i % 4 * 2 & 3;
    return q < 2 ? q - 2 : q - 1;
}

static float add_block(float acc, const uint8_t *w, const void *col, size_t k, size_t b) {
    const qk_col_q8 c = qk_col_q8_at(col, k);
    const qk_i2_256 blk = block_at(w, 0);
    for (size_t s = 0; s < QK_K / QK_BLOCK; s++) {
        const size_t first = b * QK_K + s * QK_BLOCK;
        int isum = 0;
        for (size_t i = 0; i < QK_BLOCK; i++) isum += element(&blk, s * QK_BLOCK + i) * c.q[first + i];
        acc += c.d[first / QK_BLOCK] * (float)isum;
    }
    return acc;
}

QK_REF_MATMULS(i2_256, QK_I2_256, add_block)

void qk_dequant_i2_256_ref(const void *w, float *dst, size_t k) {
    for (size_t b = 0; b < k / QK_K; b++) {
        const qk_i2_256 blk = block_at(w, b);
        for (size_t i = 0; i < QK_K; i++) *dst++ = (float)element(&blk, i);
    }
}
