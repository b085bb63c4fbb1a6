/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The QSF formats with x = d * q + m and blocks of 64. The including file has defined
 *   qsf_block                                  the struct of a block, with d and m
 *   void unpack(const qsf_block *, int q[QK_QSF_BLOCK]) */
#ifndef QSF_KERNELS_GENERIC_QSF_MINIMUM_H
#define QSF_KERNELS_GENERIC_QSF_MINIMUM_H

static qsf_block block_at(const uint8_t *w, size_t b) {
    qsf_block blk;
    memcpy(&blk, w + b * sizeof blk, sizeof blk);
    return blk;
}

static float add_block(float acc, const uint8_t *w, const void *col, size_t k, size_t b) {
    const qk_col_q8 c = qk_col_q8_at(col, k);
    const qsf_block blk = block_at(w, 0);
    const float d = qk_f16_to_f32(blk.d), m = qk_f16_to_f32(blk.m);
    int q[QK_QSF_BLOCK];
    unpack(&blk, q);
    for (size_t s = 2 * b; s < 2 * b + 2; s++) {
        int isum = 0;
        for (size_t i = 0; i < QK_BLOCK; i++) isum += q[s % 2 * QK_BLOCK + i] * c.q[s * QK_BLOCK + i];
        acc += d * c.d[s] * (float)isum;
        acc += m * c.ds[s];
    }
    return acc;
}

static void dequant(const void *w, float *dst, size_t k) {
    for (size_t b = 0; b < k / QK_QSF_BLOCK; b++) {
        const qsf_block blk = block_at(w, b);
        const float d = qk_f16_to_f32(blk.d), m = qk_f16_to_f32(blk.m);
        int q[QK_QSF_BLOCK];
        unpack(&blk, q);
        for (int i = 0; i < QK_QSF_BLOCK; i++) *dst++ = d * (float)q[i] + m;
    }
}

#endif
