/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IQ2_XS weights: words of an index and seven signs (kernels/grids.h). */
#include <string.h>

#include "kernels/act.h"
#include "kernels/grids.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

typedef qk_iq2_xs grid_block;
enum { GRID_SUB = 16 };
#define GRID_UNIT 0x1p-3f

static void unpack(const grid_block *blk, int *q);

static int scale_of(const grid_block *blk, size_t j) { return blk->scales[j / 2] >> j % 2 * 4 & 15; }

static uint16_t half_of(const grid_block *blk) { return blk->d; }

#include "kernels/generic/grid_rows.h"

static void unpack(const grid_block *blk, int *q) {
    for (size_t l = 0; l < 32; l++)
        put_eight(q + 8 * l, qk_grid_iq2_xs[blk->qs[l] & 511], qk_levels_iq2, qk_grid_signs(blk->qs[l] >> 9));
}

QK_REF_MATMULS(iq2_xs, QK_IQ2_XS, add_block)

void qk_dequant_iq2_xs_ref(const void *w, float *dst, size_t k) { dequant(w, dst, k); }
