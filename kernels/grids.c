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

/* Codes to levels: one element, then all of eight indices. */
#define IQ1_LEVEL(code)     (8u * (code))
#define IQ2_LEVEL(code)     ((code) == 0 ? 8u : (code) == 1 ? 25u : 43u)
#define IQ3_XXS_LEVEL(code) ((code) == 7 ? 62u : 8u * (code) + 4)
#define IQ3_S_LEVEL(code)   (2u * (code) + 1)

#define PAIR_AT(level, p, i)   ((uint64_t)level((p) >> 2 * (i)&3) << 8 * (i))
#define NIBBLE_AT(level, p, i) (level((uint32_t)(p) >> 4 * (i)&7) << 8 * (i))
#define EIGHT(level, p)                                                                          \
    (PAIR_AT(level, p, 0) | PAIR_AT(level, p, 1) | PAIR_AT(level, p, 2) | PAIR_AT(level, p, 3) | \
     PAIR_AT(level, p, 4) | PAIR_AT(level, p, 5) | PAIR_AT(level, p, 6) | PAIR_AT(level, p, 7))
#define FOUR(level, p) \
    (NIBBLE_AT(level, p, 0) | NIBBLE_AT(level, p, 1) | NIBBLE_AT(level, p, 2) | NIBBLE_AT(level, p, 3))
#define ALL(of, level, a, b, c, d, e, f, g, h)                                                        \
    of(level, a), of(level, b), of(level, c), of(level, d), of(level, e), of(level, f), of(level, g), \
        of(level, h),
#define IQ1(...)     ALL(EIGHT, IQ1_LEVEL, __VA_ARGS__)
#define IQ2(...)     ALL(EIGHT, IQ2_LEVEL, __VA_ARGS__)
#define IQ3_XXS(...) ALL(FOUR, IQ3_XXS_LEVEL, __VA_ARGS__)
#define IQ3_S(...)   ALL(FOUR, IQ3_S_LEVEL, __VA_ARGS__)

const uint64_t qk_points_iq1[2048] = { QK_GRID_IQ1(IQ1) };
const uint64_t qk_points_iq2_xxs[256] = { QK_GRID_IQ2_XXS(IQ2) };
const uint64_t qk_points_iq2_xs[512] = { QK_GRID_IQ2_XS(IQ2) };
const uint64_t qk_points_iq2_s[1024] = { QK_GRID_IQ2_S(IQ2) };
const uint32_t qk_points_iq3_xxs[256] = { QK_GRID_IQ3_XXS(IQ3_XXS) };
const uint32_t qk_points_iq3_s[512] = { QK_GRID_IQ3_S(IQ3_S) };

const uint8_t qk_levels_iq1[16] = { 0, 8, 16, 0, 0, 8, 16, 0, 0, 8, 16, 0, 0, 8, 16, 0 };
const uint8_t qk_levels_iq2[16] = { 8, 25, 43, 0, 8, 25, 43, 0, 8, 25, 43, 0, 8, 25, 43, 0 };
const uint8_t qk_levels_iq3_xxs[16] = { 4, 12, 20, 28, 36, 44, 52, 62, 4, 12, 20, 28, 36, 44, 52, 62 };
const uint8_t qk_levels_iq3_s[16] = { 1, 3, 5, 7, 9, 11, 13, 15, 1, 3, 5, 7, 9, 11, 13, 15 };
