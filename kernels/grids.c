/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The grids, and the levels of their codes. */
#include "kernels/grids.h"

#include "kernels/grid_iq1.h"
#include "kernels/grid_iq2.h"
#include "kernels/grid_iq3.h"

#define POINTS(a, b, c, d, e, f, g, h) a, b, c, d, e, f, g, h,

const uint16_t qk_grid_iq1[2048] = { QK_GRID_IQ1(POINTS) };
const uint16_t qk_grid_iq2_xxs[256] = { QK_GRID_IQ2_XXS(POINTS) };
const uint16_t qk_grid_iq2_xs[512] = { QK_GRID_IQ2_XS(POINTS) };
const uint16_t qk_grid_iq2_s[1024] = { QK_GRID_IQ2_S(POINTS) };
const uint16_t qk_grid_iq3_xxs[256] = { QK_GRID_IQ3_XXS(POINTS) };
const uint16_t qk_grid_iq3_s[512] = { QK_GRID_IQ3_S(POINTS) };

const uint8_t qk_levels_iq1[16] = { 0, 8, 16, 0, 0, 8, 16, 0, 0, 8, 16, 0, 0, 8, 16, 0 };
const uint8_t qk_levels_iq2[16] = { 8, 25, 43, 0, 8, 25, 43, 0, 8, 25, 43, 0, 8, 25, 43, 0 };
const uint8_t qk_levels_iq3_xxs[16] = { 4, 12, 20, 28, 36, 44, 52, 62, 4, 12, 20, 28, 36, 44, 52, 62 };
const uint8_t qk_levels_iq3_s[16] = { 1, 3, 5, 7, 9, 11, 13, 15, 1, 3, 5, 7, 9, 11, 13, 15 };
