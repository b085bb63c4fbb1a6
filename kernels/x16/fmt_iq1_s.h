/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IQ1_S: planes of indices, planes of their upper bits, a scale and a sign. */
#ifndef QSF_KERNELS_X16_FMT_IQ1_S_H
#define QSF_KERNELS_X16_FMT_IQ1_S_H

#define FMT_AHEAD 1024

#include "kernels/x16/planes.h"

#include "kernels/grid_iq1.h"
#include "kernels/x16/rearrange_grid.h"

enum { FMT_PLANES = 12, FMT_PLANE_AT = 2, FMT_HALVES = 1, FMT_HALF_AT = 0 };
enum {
    FMT_SUB = 32,
    FMT_SCALED = 1,
    FMT_MAX = 18,
    FMT_OFF = 9,
    FMT_SIGNED = 0,
    FMT_MINS = 0,
    FMT_INT16 = 0,
    FMT_CENTER = 0
};
#define FMT_UNIT    0x1p-3f
#define FMT_FIX_ROW qk_fix_iq1_s

enum { GRID_WIDTH = 8, GRID_BITS = 11, GRID_CENTER = 0 };
#define GRID_HIGH_AT(n) ((n) % 2 * 4)
#define GRID            qk_points_iq1
#define GRID_POINTS     QK_GRID_IQ1
#define GRID_LEVELS     qk_levels_iq1
#define GRID_STEPS \
    { QK_GRID_IQ1_FIRST }, { QK_GRID_IQ1_LAST }, { QK_GRID_IQ1_COUNT }

QK_INLINE li grid_high(const uint8_t *p, size_t part, int n, int v);
QK_INLINE li grid_marks(const uint8_t *p, size_t part, int n, int v);
QK_INLINE li grid_scale(const uint8_t *p, size_t part, int j, int v);

#include "kernels/x16/grid_x16.h"

QK_INLINE li grid_high(const uint8_t *p, size_t part, int n, int v) {
    return plane(p + 2 * part * QK_PLANE, 8 + n / 2, v);
}

QK_INLINE li grid_marks(const uint8_t *p, size_t part, int n, int v) {
    /* All where the sign is not set. */
    return l_xor(l_sar(l_shl(grid_high(p, part, n, v), 4 - GRID_HIGH_AT(n)), 31), l_set(-1));
}

QK_INLINE li grid_scale(const uint8_t *p, size_t part, int j, int v) {
    /* Eight times 2n + 1: n from a bit of each of three bytes. */
    const li bits = keep(l_shr(grid_high(p, part, j, v), GRID_HIGH_AT(j)), 0x00080808u);
    return l_shr(l_dot(l_set(8), bits, l_set(0x00080402)), 3);
}

#endif
