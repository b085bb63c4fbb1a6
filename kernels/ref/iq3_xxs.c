/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IQ3_XXS weights: indices, then for 32 elements four times seven signs and the scale (kernels/grids.h). */
#include <string.h>

#include "kernels/act.h"
#include "kernels/grids.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

typedef qk_iq3_xxs grid_block;
enum { GRID_SUB = 32 };
#define GRID_UNIT 0x1p-2f

static void unpack(const grid_block *blk, int *q);

static int scale_of(const grid_block *blk, size_t j) { return blk->signs[4 * j + 3] >> 4; }

static uint16_t half_of(const grid_block *blk) { return blk->d; }

#include "kernels/generic/grid_rows.h"

static void unpack(const grid_block *blk, int *q) {
    for (size_t n = 0; n < 8; n++) {
        const uint32_t packed = qk_load_u32(blk->signs + 4 * n);
        for (size_t l = 0; l < 8; l++) {
            const unsigned signs = qk_grid_signs(packed >> 7 * (l / 2) & 127);
            put_four(q + 32 * n + 4 * l, qk_grid_iq3_xxs[blk->qs[8 * n + l]], qk_levels_iq3_xxs,
                     signs >> l % 2 * 4);
        }
    }
}

QK_REF_MATMULS(iq3_xxs, QK_IQ3_XXS, add_block)

void qk_dequant_iq3_xxs_ref(const void *w, float *dst, size_t k) { dequant(w, dst, k); }
