/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IQ3_S weights: indices, their ninth bits, signs (kernels/grids.h). */
#include <string.h>

#include "kernels/act.h"
#include "kernels/grids.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

typedef qk_iq3_s grid_block;
enum { GRID_SUB = 32 };
#define GRID_UNIT 1.0f

static void unpack(const grid_block *blk, int *q);

static int scale_of(const grid_block *blk, size_t j) { return blk->scales[j / 2] >> j % 2 * 4 & 15; }

static uint16_t half_of(const grid_block *blk) { return blk->d; }

#include "kernels/generic/grid_rows.h"

static void unpack(const grid_block *blk, int *q) {
    for (size_t l = 0; l < 64; l++) {
        const unsigned high = (unsigned)blk->qh[l / 8] >> l % 8 & 1;
        put_four(q + 4 * l, qk_grid_iq3_s[blk->qs[l] | high << 8], qk_levels_iq3_s,
                 (unsigned)blk->signs[l / 2] >> l % 2 * 4);
    }
}

QK_REF_MATMULS(iq3_s, QK_IQ3_S, add_block)

void qk_dequant_iq3_s_ref(const void *w, float *dst, size_t k) { dequant(w, dst, k); }
