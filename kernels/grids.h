/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The formats with grids, super-blocks of 256 elements (layouts and constants: ggml-org/ggml,
 * src/ggml-common.h and src/ggml-quants.c). An index chooses a point of a grid, which is the codes of 8 (IQ1,
 * IQ2) or 4 (IQ3) elements; a code represents a level. x = d * unit * s * q with a whole s for each
 * sub-block, from its scale of n bits as 2n + 1:
 *
 *             unit  sub  q                                  indices     signs, scales
 *   IQ2_XXS   1/8   32   +-8, 25, 43                        8 bits      with a sign for seven of eight
 *                                                                       elements
 *   IQ2_XS    1/8   16   the same                           9 bits      the same, scales apart
 *   IQ2_S     1/8   16   the same                           8 + 2 bits  each of them
 *   IQ3_XXS   1/4   32   +-4, 12, 20, 28, 36, 44, 52, 62    8 bits      as IQ2_XXS
 *   IQ3_S     1     32   +-1, 3, 5, .. 15                   8 + 1 bits  each of them
 *   IQ1_S     1/8   32   8 * (-1, 0, 1) +- 1                8 + 3 bits  the sign of the last 1 for 32
 *                                                                       elements
 *   IQ1_M     1/8   16   the same                           8 + 3 bits  the same for 8 elements; d in four
 *                                                                       nibbles
 *
 * Where there are seven signs for eight elements, the last makes their number even. */
#ifndef QSF_KERNELS_GRIDS_H
#define QSF_KERNELS_GRIDS_H

#include <stdint.h>

/* Of each index the codes: element i of 8 at bits 2i, element i of 4 at bits 4i. */
extern const uint16_t qk_grid_iq1[2048], qk_grid_iq2_xxs[256], qk_grid_iq2_xs[512], qk_grid_iq2_s[1024],
    qk_grid_iq3_xxs[256], qk_grid_iq3_s[512];

/* Of each index the levels of its elements without their signs, element i in byte i; IQ1:
 * 8 * (-1, 0, 1) + 8. */
extern const uint64_t qk_points_iq1[2048], qk_points_iq2_xxs[256], qk_points_iq2_xs[512],
    qk_points_iq2_s[1024];
extern const uint32_t qk_points_iq3_xxs[256], qk_points_iq3_s[512];

/* Of each code the level, repeated to 16. IQ1: 8 * (-1, 0, 1) + 8. */
extern const uint8_t qk_levels_iq1[16], qk_levels_iq2[16], qk_levels_iq3_xxs[16], qk_levels_iq3_s[16];

/* Bit i: element i is negative, from the first seven. */
static inline unsigned qk_grid_signs(unsigned seven) {
    unsigned odd = seven ^ seven >> 4;
    odd ^= odd >> 2;
    return seven | ((odd ^ odd >> 1) & 1) << 7;
}

#endif
