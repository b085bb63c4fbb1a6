/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IQ2_S weights: indices, signs and the upper bits of the indices (kernels/grids.h). */
#include <string.h>

#include "kernels/act.h"
#include "kernels/grids.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

typedef qk_iq2_s grid_block;
enum { GRID_SUB = 16 };
#define GRID_UNIT 0x1p-3f

static void unpack(const grid_block *blk, int *q);

static int scale_of(const grid_block *blk, size_t j) { return blk->scales[j / 2] >> j % 2 * 4 & 15; }

static uint16_t half_of(const grid_block *blk) { return blk->d; }

#include "kernels/generic/grid_rows.h"

static void unpack(const grid_block *blk, int *q) {
    for (size_t l = 0; l < 32; l++) {
        const unsigned high = blk->qh[l / 4] >> l % 4 * 2 & 3;
        put_eight(q + 8 * l, qk_grid_iq2_s[blk->qs[l] | high << 8], qk_levels_iq2, blk->signs[l]);
    }
}

QK_REF_MATMULS(iq2_s, QK_IQ2_S, add_block)

void qk_dequant_iq2_s_ref(const void *w, float *dst, size_t k) { dequant(w, dst, k); }
