/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The formats with grids, kernels/grids.h. The including file has defined
 *   grid_block               the struct of a block
 *   GRID_SUB, GRID_UNIT      elements of a sub-block, what d is multiplied by
 *   void unpack(const grid_block *, int q[QK_K])
 *   int scale_of(const grid_block *, size_t j)   of sub-block j, as it is stored
 *   uint16_t half_of(const grid_block *)         d */
#ifndef QSF_KERNELS_GENERIC_GRID_ROWS_H
#define QSF_KERNELS_GENERIC_GRID_ROWS_H

static grid_block block_at(const uint8_t *w, size_t b) {
    grid_block blk;
    memcpy(&blk, w + b * sizeof blk, sizeof blk);
    return blk;
}

static float d_of(const grid_block *blk) { return qk_f16_to_f32(half_of(blk)) * GRID_UNIT; }

static float add_block(float acc, const uint8_t *w, const void *col, size_t k, size_t b) {
    const qk_col_q8k x = qk_col_q8k_at(col, k);
    const grid_block blk = block_at(w, 0);
    int q[QK_K], isum = 0;
    unpack(&blk, q);
    for (size_t j = 0; j < QK_K / GRID_SUB; j++) {
        int sub = 0;
        for (size_t i = j * GRID_SUB; i < (j + 1) * GRID_SUB; i++) sub += q[i] * x.q[b * QK_K + i];
        isum += sub * (2 * scale_of(&blk, j) + 1);
    }
    return acc + d_of(&blk) * x.d[b] * (float)isum;
}

/* Exact: 11 bits of d, 5 of the scale, 6 of q. */
static void dequant(const void *w, float *dst, size_t k) {
    for (size_t b = 0; b < k / QK_K; b++) {
        const grid_block blk = block_at(w, b);
        int q[QK_K];
        unpack(&blk, q);
        for (size_t i = 0; i < QK_K; i++)
            *dst++ = d_of(&blk) * (float)(2 * scale_of(&blk, i / GRID_SUB) + 1) * (float)q[i];
    }
}

/* Eight elements of a point of IQ1 or IQ2, four of IQ3. */
static inline void put_eight(int *q, uint16_t point, const uint8_t *levels, unsigned signs) {
    for (int i = 0; i < 8; i++) {
        const int level = levels[point >> 2 * i & 3];
        q[i] = signs >> i & 1 ? -level : level;
    }
}

static inline void put_four(int *q, uint16_t point, const uint8_t *levels, unsigned signs) {
    for (int i = 0; i < 4; i++) {
        const int level = levels[point >> 4 * i & 15];
        q[i] = signs >> i & 1 ? -level : level;
    }
}

static inline void put_iq1(int *q, uint16_t point, int minus) {
    put_eight(q, point, qk_levels_iq1, 0);
    for (int i = 0; i < 8; i++) q[i] += minus ? -9 : -7;
}

#endif
