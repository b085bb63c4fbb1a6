/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IQ2_XXS weights: for 32 elements four indices in a dword, four times seven signs and the scale
 * in another (kernels/grids.h). */
#include <string.h>

#include "kernels/act.h"
#include "kernels/grids.h"
#include "kernels/load.h"
#include "kernels/ref/ref.h"

typedef qk_iq2_xxs grid_block;
enum { GRID_SUB = 32 };
#define GRID_UNIT 0x1p-3f

static void unpack(const grid_block *blk, int *q);

static int scale_of(const grid_block *blk, size_t j) { return blk->qs[4 * j + 3] >> 12; }

static uint16_t half_of(const grid_block *blk) { return blk->d; }

#include "kernels/generic/grid_rows.h"

static void unpack(const grid_block *blk, int *q) {
    for (size_t n = 0; n < 8; n++) {
        const uint32_t points = (uint32_t)blk->qs[4 * n] | (uint32_t)blk->qs[4 * n + 1] << 16;
        const uint32_t signs = (uint32_t)blk->qs[4 * n + 2] | (uint32_t)blk->qs[4 * n + 3] << 16;
        for (size_t l = 0; l < 4; l++)
            put_eight(q + 32 * n + 8 * l, qk_grid_iq2_xxs[points >> 8 * l & 255], qk_levels_iq2,
                      qk_grid_signs(signs >> 7 * l & 127));
    }
}

QK_REF_MATMULS(iq2_xxs, QK_IQ2_XXS, add_block)

void qk_dequant_iq2_xxs_ref(const void *w, float *dst, size_t k) { dequant(w, dst, k); }
