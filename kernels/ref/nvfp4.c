/* SPDX-License-Identifier: GPL-3.0-or-later */
/* NVFP4 weights: blocks of 64 in four sub-blocks of 16, x = scale / 2 * value of a nibble. */
#include <math.h>
#include <string.h>

#include "kernels/act.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

static qk_nvfp4 block_at(const uint8_t *w, size_t b) {
    qk_nvfp4 blk;
    memcpy(&blk, w + b * sizeof blk, sizeof blk);
    return blk;
}

static void unpack(const qk_nvfp4 *blk, int *q) {
    for (int i = 0; i < QK_NVFP4_BLOCK; i++)
        q[i] = qk_fp4_values[blk->qs[i / 16 * 8 + i % 8] >> i / 8 % 2 * 4 & 15];
}

/* Half the scale, as the values are doubled; the code of a NaN counts as 0, as it does in ggml-org/ggml. */
static float half_scale(uint8_t code) {
    const int exp = code >> 3 & 15, man = code & 7;
    if ((code & 0x7f) == 0x7f) return 0;
    return exp ? ldexpf((float)(8 + man), exp - 11) : ldexpf((float)man, -10);
}

static float add_block(float acc, const uint8_t *w, const void *col, size_t k, size_t b) {
    const qk_col_q8 c = qk_col_q8_at(col, k);
    const qk_nvfp4 blk = block_at(w, 0);
    int q[QK_NVFP4_BLOCK];
    unpack(&blk, q);
    for (size_t s = 0; s < 4; s++) {
        const size_t at = b * QK_NVFP4_BLOCK + s * 16;
        int isum = 0;
        for (size_t i = 0; i < 16; i++) isum += q[s * 16 + i] * c.q[at + i];
        acc += half_scale(blk.d[s]) * c.d[at / 32] * (float)isum;
    }
    return acc;
}

QK_REF_MATMULS(nvfp4, QK_NVFP4, add_block)

void qk_dequant_nvfp4_ref(const void *w, float *dst, size_t k) {
    for (size_t b = 0; b < k / QK_NVFP4_BLOCK; b++) {
        const qk_nvfp4 blk = block_at(w, b);
        int q[QK_NVFP4_BLOCK];
        unpack(&blk, q);
        for (int i = 0; i < QK_NVFP4_BLOCK; i++) *dst++ = half_scale(blk.d[i / 16]) * (float)q[i];
    }
}
