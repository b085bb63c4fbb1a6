/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF 3-bit weights: blocks of 64, x = d * q + m. */
#include <string.h>

#include "kernels/act.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

typedef qk_qsf3 qsf_block;

/* Eight elements take three bytes of the bit stream. */
static void unpack(const qsf_block *blk, int *q) {
    for (size_t i = 0; i < QK_QSF_BLOCK; i++) {
        const uint8_t *p = blk->qs + i / 8 * 3;
        const uint32_t bits = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
        q[i] = (int)(bits >> i % 8 * 3 & 7);
    }
}

#include "kernels/generic/qsf_minimum.h"

QK_REF_MATMULS(qsf3, QK_QSF3, add_block)

void qk_dequant_qsf3_ref(const void *w, float *dst, size_t k) { dequant(w, dst, k); }
