/* SPDX-License-Identifier: GPL-3.0-or-later */
/* MXFP4 weights: blocks of 32, x = 2^(e - 128) * value of a nibble. */
#include <math.h>
#include <string.h>

#include "kernels/act.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

static qk_mxfp4 block_at(const uint8_t *w, size_t b) {
    qk_mxfp4 blk;
    memcpy(&blk, w + b * sizeof blk, sizeof blk);
    return blk;
}

static void unpack(const qk_mxfp4 *blk, int *q) {
    for (int i = 0; i < QK_BLOCK / 2; i++) {
        q[i] = qk_fp4_values[blk->qs[i] & 15];
        q[i + QK_BLOCK / 2] = qk_fp4_values[blk->qs[i] >> 4];
    }
}

static float add_block(float acc, const uint8_t *w, const void *col, size_t k, size_t b) {
    const qk_col_q8 c = qk_col_q8_at(col, k);
    const qk_mxfp4 blk = block_at(w, 0);
    int q[QK_BLOCK], isum = 0;
    unpack(&blk, q);
    for (size_t i = 0; i < QK_BLOCK; i++) isum += q[i] * c.q[b * QK_BLOCK + i];
    return acc + ldexpf(1.0f, blk.e - 128) * c.d[b] * (float)isum;
}

QK_REF_MATMULS(mxfp4, QK_MXFP4, add_block)

void qk_dequant_mxfp4_ref(const void *w, float *dst, size_t k) {
    for (size_t b = 0; b < k / QK_BLOCK; b++) {
        const qk_mxfp4 blk = block_at(w, b);
        const float d = ldexpf(1.0f, blk.e - 128);
        int q[QK_BLOCK];
        unpack(&blk, q);
        for (int i = 0; i < QK_BLOCK; i++) *dst++ = d * (float)q[i];
    }
}
