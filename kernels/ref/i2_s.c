/* SPDX-License-Identifier: GPL-3.0-or-later */
/* I2_S weights: blocks of 128 trits in two bits each, x = (q - 1) * the scale of the whole tensor. */
#include <string.h>

#include "kernels/act.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

static qk_i2_s block_at(const uint8_t *w, size_t b) {
    qk_i2_s blk;
    memcpy(&blk, w + b * sizeof blk, sizeof blk);
    return blk;
}

static void unpack(const qk_i2_s *blk, int *q) {
    for (size_t i = 0; i < QK_I2S_BLOCK; i++) q[i] = (blk->qs[i % 32] >> (6 - i / 32 * 2) & 3) - 1;
}

static float add_block(float acc, const uint8_t *w, const void *col, size_t k, size_t b) {
    const qk_col_q8 c = qk_col_q8_at(col, k);
    const qk_i2_s blk = block_at(w, 0);
    int q[QK_I2S_BLOCK];
    unpack(&blk, q);
    for (size_t s = 4 * b; s < 4 * b + 4; s++) {
        int isum = 0;
        for (size_t i = 0; i < QK_BLOCK; i++) isum += q[s % 4 * QK_BLOCK + i] * c.q[s * QK_BLOCK + i];
        acc += c.d[s] * (float)isum;
    }
    return acc;
}

static void apply_scale(const qk_mm *m, size_t row0, size_t row1) {
    for (size_t c = 0; c < m->n_cols; c++)
        for (size_t r = row0; r < row1; r++) m->y[c * m->y_stride + r] *= m->scale;
}

void qk_mm_i2_s_ref(const qk_mm *m, size_t row0, size_t row1) {
    qk_ref_rows(m, row0, row1, QK_I2_S, add_block);
    apply_scale(m, row0, row1);
}

void qk_mm16_i2_s_ref(const qk_mm *m, size_t row0, size_t row1) {
    qk_ref_groups(m, row0, row1, QK_I2_S, add_block, qk_unpack_row_i2_s);
    apply_scale(m, row0, row1);
}

void qk_dequant_i2_s_ref(const void *w, float *dst, size_t k) {
    for (size_t b = 0; b < k / QK_I2S_BLOCK; b++) {
        const qk_i2_s blk = block_at(w, b);
        int q[QK_I2S_BLOCK];
        unpack(&blk, q);
        for (int i = 0; i < QK_I2S_BLOCK; i++) *dst++ = (float)q[i];
    }
}
