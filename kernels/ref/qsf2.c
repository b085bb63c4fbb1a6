/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF 2-bit weights, symmetric (m = -1.5 d) or asymmetric: blocks of 64, x = d * q + m. */
#include <string.h>

#include "kernels/act.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

typedef qk_qsf2 qsf_block;

static void unpack(const qsf_block *blk, int *q) {
    for (size_t i = 0; i < QK_QSF_BLOCK; i++) q[i] = blk->qs[i / 4] >> i % 4 * 2 & 3;
}

#include "kernels/generic/qsf_minimum.h"

QK_REF_MATMULS(qsf2, QK_QSF2, add_block)

void qk_dequant_qsf2_ref(const void *w, float *dst, size_t k) { dequant(w, dst, k); }
