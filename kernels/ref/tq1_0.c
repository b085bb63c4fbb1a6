/* SPDX-License-Identifier: GPL-3.0-or-later */
/* TQ1_0 weights: super-blocks of 256 trits, x = d * (trit - 1). */
#include <string.h>

#include "kernels/act.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

static qk_tq1_0 block_at(const uint8_t *w, size_t b) {
    qk_tq1_0 blk;
    memcpy(&blk, w + b * sizeof blk, sizeof blk);
    return blk;
}

/* Trit n of a byte: the byte is a base-three fraction in units of 1/256, rounded up. */
static int trit(uint8_t byte, size_t n) {
    static const uint8_t pow3[] = { 1, 3, 9, 27, 81 };
    return (uint8_t)(byte * pow3[n]) * 3 >> 8;
}

/* Five trits a byte: 32 bytes with elements 0-159, 16 with 160-239, then four bytes with four each. */
static void unpack(const qk_tq1_0 *blk, int *q) {
    for (size_t i = 0; i < 160; i++) q[i] = trit(blk->qs[i % 32], i / 32) - 1;
    for (size_t i = 0; i < 80; i++) q[160 + i] = trit(blk->qs[32 + i % 16], i / 16) - 1;
    for (size_t i = 0; i < 16; i++) q[240 + i] = trit(blk->qh[i % 4], i / 4) - 1;
}

static float add_block(float acc, const uint8_t *w, const void *col, size_t k, size_t b) {
    const qk_col_q8k c = qk_col_q8k_at(col, k);
    const qk_tq1_0 blk = block_at(w, 0);
    int q[QK_K], isum = 0;
    unpack(&blk, q);
    for (size_t i = 0; i < QK_K; i++) isum += q[i] * c.q[b * QK_K + i];
    return acc + qk_f16_to_f32(blk.d) * c.d[b] * (float)isum;
}

QK_REF_MATMULS(tq1_0, QK_TQ1_0, add_block)

void qk_dequant_tq1_0_ref(const void *w, float *dst, size_t k) {
    for (size_t b = 0; b < k / QK_K; b++) {
        const qk_tq1_0 blk = block_at(w, b);
        const float d = qk_f16_to_f32(blk.d);
        int q[QK_K];
        unpack(&blk, q);
        for (size_t i = 0; i < QK_K; i++) *dst++ = d * (float)q[i];
    }
}
