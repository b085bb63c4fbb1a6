/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IQ1_S weights: indices; for 32 elements their upper bits, the scale and a sign in a word
 * (kernels/grids.h). */
#include <string.h>

#include "kernels/act.h"
#include "kernels/grids.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

typedef qk_iq1_s grid_block;
enum { GRID_SUB = 32 };
#define GRID_UNIT 0x1p-3f

static void unpack(const grid_block *blk, int *q);

static int scale_of(const grid_block *blk, size_t j) { return blk->qh[j] >> 12 & 7; }

static uint16_t half_of(const grid_block *blk) { return blk->d; }

#include "kernels/generic/grid_rows.h"

static void unpack(const grid_block *blk, int *q) {
    for (size_t l = 0; l < 32; l++) {
        const unsigned qh = blk->qh[l / 4], high = qh >> l % 4 * 3 & 7;
        put_iq1(q + 8 * l, qk_grid_iq1[blk->qs[l] | high << 8], (int)(qh >> 15));
    }
}

QK_REF_MATMULS(iq1_s, QK_IQ1_S, add_block)

void qk_dequant_iq1_s_ref(const void *w, float *dst, size_t k) { dequant(w, dst, k); }
