/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IQ3_S: planes of indices, of their ninth bits, of signs, scales. */
#ifndef QSF_KERNELS_X16_FMT_IQ3_S_H
#define QSF_KERNELS_X16_FMT_IQ3_S_H

#include "kernels/x16/planes.h"

#include "kernels/grid_iq3.h"
#include "kernels/x16/rearrange_grid.h"

enum { FMT_PLANES = 27, FMT_PLANE_AT = 2, FMT_HALVES = 1, FMT_HALF_AT = 0 };
enum {
    FMT_SUB = 32,
    FMT_SCALED = 1,
    FMT_MAX = 30,
    FMT_OFF = 15,
    FMT_SIGNED = 0,
    FMT_MINS = 0,
    FMT_INT16 = 0,
    FMT_CENTER = 0
};
#define FMT_UNIT    1.0f
#define FMT_FIX_ROW qk_fix_iq3_s

enum { GRID_WIDTH = 4, GRID_BITS = 9, GRID_CENTER = 15 };
#define GRID_HIGH_AT(n) (n)
#define GRID            qk_points_iq3_s
#define GRID_POINTS     QK_GRID_IQ3_S
#define GRID_LEVELS     qk_levels_iq3_s

QK_INLINE li grid_high(const uint8_t *p, size_t part, int n, int v);
QK_INLINE li grid_marks(const uint8_t *p, size_t part, int n, int v);
QK_INLINE li grid_scale(const uint8_t *p, size_t part, int j, int v);

#include "kernels/x16/grid_x16.h"

QK_INLINE li grid_high(const uint8_t *p, size_t part, int n, int v) {
    (void)n;
    return l_shr(plane(p + part / 2 * QK_PLANE, 16, v), (int)(part % 2) * 4);
}

QK_INLINE li grid_marks(const uint8_t *p, size_t part, int n, int v) {
    return plane(p + 2 * part * QK_PLANE, 18 + n, v);
}

QK_INLINE li grid_scale(const uint8_t *p, size_t part, int j, int v) {
    return odd_scale(keep(l_shr(plane(p, 26, v), (int)part * 8 + j * 4), 15));
}

#endif
