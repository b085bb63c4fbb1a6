/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF ternary weights: blocks of 64, x = d times -1, 0 or 1. */
#include <string.h>

#include "kernels/act.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

static qk_qsft block_at(const uint8_t *w, size_t b) {
    qk_qsft blk;
    memcpy(&blk, w + b * sizeof blk, sizeof blk);
    return blk;
}

static void unpack(const qk_qsft *blk, int *q) {
    for (size_t i = 0; i < QK_QSF_BLOCK; i++) {
        const int zero = blk->zero[i / 8] >> i % 8 & 1, negative = blk->sign[i / 8] >> i % 8 & 1;
        q[i] = zero ? 0 : negative ? -1 : 1;
    }
}

static float add_block(float acc, const uint8_t *w, const void *col, size_t k, size_t b) {
    const qk_col_q8 c = qk_col_q8_at(col, k);
    const qk_qsft blk = block_at(w, 0);
    const float d = qk_f16_to_f32(blk.d);
    int q[QK_QSF_BLOCK];
    unpack(&blk, q);
    for (size_t s = 2 * b; s < 2 * b + 2; s++) {
        int isum = 0;
        for (size_t i = 0; i < QK_BLOCK; i++) isum += q[s % 2 * QK_BLOCK + i] * c.q[s * QK_BLOCK + i];
        acc += d * c.d[s] * (float)isum;
    }
    return acc;
}

QK_REF_MATMULS(qsft, QK_QSFT, add_block)

void qk_dequant_qsft_ref(const void *w, float *dst, size_t k) {
    for (size_t b = 0; b < k / QK_QSF_BLOCK; b++) {
        const qk_qsft blk = block_at(w, b);
        const float d = qk_f16_to_f32(blk.d);
        int q[QK_QSF_BLOCK];
        unpack(&blk, q);
        for (int i = 0; i < QK_QSF_BLOCK; i++) *dst++ = d * (float)q[i];
    }
}
