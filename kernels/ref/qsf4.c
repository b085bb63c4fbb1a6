/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF 4-bit weights: blocks of 64, x = d * q + m. */
#include <string.h>

#include "kernels/act.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

typedef qk_qsf4 qsf_block;

static void unpack(const qsf_block *blk, int *q) {
    for (size_t i = 0; i < QK_QSF_BLOCK; i++) q[i] = blk->qs[i / 2] >> i % 2 * 4 & 15;
}

#include "kernels/generic/qsf_minimum.h"

QK_REF_MATMULS(qsf4, QK_QSF4, add_block)

void qk_dequant_qsf4_ref(const void *w, float *dst, size_t k) { dequant(w, dst, k); }
