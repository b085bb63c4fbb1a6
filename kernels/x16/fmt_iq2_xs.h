/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IQ2_XS: planes of indices, planes of signs with the ninth bits of indices, scales. */
#ifndef QSF_KERNELS_X16_FMT_IQ2_XS_H
#define QSF_KERNELS_X16_FMT_IQ2_XS_H

#define FMT_AHEAD 1024

#include "kernels/x16/planes.h"

#include "kernels/grid_iq2.h"
#include "kernels/x16/rearrange_grid.h"

enum { FMT_PLANES = 18, FMT_PLANE_AT = 2, FMT_HALVES = 1, FMT_HALF_AT = 0 };
enum {
    FMT_SUB = 16,
    FMT_SCALED = 1,
    FMT_MAX = 86,
    FMT_OFF = 43,
    FMT_SIGNED = 0,
    FMT_MINS = 0,
    FMT_INT16 = 0,
    FMT_CENTER = 0
};
#define FMT_UNIT    0x1p-3f
#define FMT_FIX_ROW qk_fix_iq2_xs

enum { GRID_WIDTH = 8, GRID_BITS = 9, GRID_CENTER = 43 };
#define GRID_HIGH_AT(n) 0
#define GRID            qk_points_iq2_xs
#define GRID_POINTS     QK_GRID_IQ2_XS
#define GRID_LEVELS     qk_levels_iq2

QK_INLINE li grid_high(const uint8_t *p, size_t part, int n, int v);
QK_INLINE li grid_marks(const uint8_t *p, size_t part, int n, int v);
QK_INLINE li grid_scale(const uint8_t *p, size_t part, int j, int v);

#include "kernels/x16/grid_x16.h"

QK_INLINE li grid_high(const uint8_t *p, size_t part, int n, int v) {
    return marks_bits(plane(p + 4 * part * QK_PLANE, 8 + n, v));
}

QK_INLINE li grid_marks(const uint8_t *p, size_t part, int n, int v) {
    return even_marks(plane(p + 4 * part * QK_PLANE, 8 + n, v));
}

QK_INLINE li grid_scale(const uint8_t *p, size_t part, int j, int v) {
    return odd_scale(keep(l_shr(plane(p + part * QK_PLANE, 16, v), j * 4), 15));
}

#endif
