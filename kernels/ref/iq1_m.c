/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IQ1_M weights: indices, their upper bits with a sign each, words of four scales and a nibble
 * of d (kernels/grids.h). */
#include <string.h>

#include "kernels/act.h"
#include "kernels/grids.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

typedef qk_iq1_m grid_block;
enum { GRID_SUB = 16 };
#define GRID_UNIT 0x1p-3f

static void unpack(const grid_block *blk, int *q);

static int scale_of(const grid_block *blk, size_t j) { return blk->scales[j / 4] >> j % 4 * 3 & 7; }

static uint16_t half_of(const grid_block *blk) {
    return (uint16_t)(blk->scales[0] >> 12 | (blk->scales[1] >> 8 & 0xf0) | (blk->scales[2] >> 4 & 0xf00) |
                      (blk->scales[3] & 0xf000));
}

#include "kernels/generic/grid_rows.h"

static void unpack(const grid_block *blk, int *q) {
    for (size_t l = 0; l < 32; l++) {
        const unsigned qh = blk->qh[l / 2] >> l % 2 * 4 & 15;
        put_iq1(q + 8 * l, qk_grid_iq1[blk->qs[l] | (qh & 7) << 8], qh >> 3 & 1);
    }
}

QK_REF_MATMULS(iq1_m, QK_IQ1_M, add_block)

void qk_dequant_iq1_m_ref(const void *w, float *dst, size_t k) { dequant(w, dst, k); }
