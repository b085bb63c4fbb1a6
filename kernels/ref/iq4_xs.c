/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IQ4_XS weights: super-blocks of 256 in eight sub-blocks of 32, x = d * scale * qk_iq4_values[q]. */
#include <string.h>

#include "kernels/act.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

static qk_iq4_xs block_at(const uint8_t *w, size_t b) {
    qk_iq4_xs blk;
    memcpy(&blk, w + b * sizeof blk, sizeof blk);
    return blk;
}

static void unpack(const qk_iq4_xs *blk, int *q) {
    for (size_t i = 0; i < QK_K; i++)
        q[i] = qk_iq4_values[blk->qs[i / 32 * 16 + i % 16] >> i / 16 % 2 * 4 & 15];
}

static int scale_of(const qk_iq4_xs *blk, size_t s) {
    return ((blk->scales_l[s / 2] >> s % 2 * 4 & 15) | (blk->scales_h >> 2 * s & 3) << 4) - 32;
}

static float add_block(float acc, const uint8_t *w, const void *col, size_t k, size_t b) {
    const qk_col_q8k c = qk_col_q8k_at(col, k);
    const qk_iq4_xs blk = block_at(w, 0);
    int q[QK_K], isum = 0;
    unpack(&blk, q);
    for (size_t s = 0; s < 8; s++) {
        int sub = 0;
        for (size_t i = s * 32; i < s * 32 + 32; i++) sub += q[i] * c.q[b * QK_K + i];
        isum += sub * scale_of(&blk, s);
    }
    return acc + qk_f16_to_f32(blk.d) * c.d[b] * (float)isum;
}

QK_REF_MATMULS(iq4_xs, QK_IQ4_XS, add_block)

void qk_dequant_iq4_xs_ref(const void *w, float *dst, size_t k) {
    for (size_t b = 0; b < k / QK_K; b++) {
        const qk_iq4_xs blk = block_at(w, b);
        const float d = qk_f16_to_f32(blk.d);
        int q[QK_K];
        unpack(&blk, q);
        for (size_t i = 0; i < QK_K; i++) *dst++ = d * (float)scale_of(&blk, i / 32) * (float)q[i];
    }
}
