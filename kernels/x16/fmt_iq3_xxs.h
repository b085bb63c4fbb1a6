/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IQ3_XXS: planes of indices, planes of signs with a scale. */
#ifndef QSF_KERNELS_X16_FMT_IQ3_XXS_H
#define QSF_KERNELS_X16_FMT_IQ3_XXS_H

#include "kernels/x16/planes.h"

#include "kernels/grid_iq3.h"
#include "kernels/x16/rearrange_grid.h"

enum { FMT_PLANES = 24, FMT_PLANE_AT = 2, FMT_HALVES = 1, FMT_HALF_AT = 0 };
enum {
    FMT_SUB = 32,
    FMT_SCALED = 1,
    FMT_MAX = 124,
    FMT_OFF = 62,
    FMT_SIGNED = 0,
    FMT_MINS = 0,
    FMT_INT16 = 0,
    FMT_CENTER = 0
};
#define FMT_UNIT    0x1p-2f
#define FMT_FIX_ROW qk_fix_iq3_xxs

enum { GRID_WIDTH = 4, GRID_BITS = 8, GRID_CENTER = 62 };
#define GRID_HIGH_AT(n) 0
#define GRID            qk_points_iq3_xxs
#define GRID_POINTS     QK_GRID_IQ3_XXS
#define GRID_LEVELS     qk_levels_iq3_xxs

QK_INLINE li grid_high(const uint8_t *p, size_t part, int n, int v);
QK_INLINE li grid_marks(const uint8_t *p, size_t part, int n, int v);
QK_INLINE li grid_scale(const uint8_t *p, size_t part, int j, int v);

#include "kernels/x16/grid_x16.h"

QK_INLINE li grid_high(const uint8_t *p, size_t part, int n, int v) {
    (void)p, (void)part, (void)n, (void)v;
    return nothing();
}

QK_INLINE li grid_marks(const uint8_t *p, size_t part, int n, int v) {
    return even_marks(plane(p + 2 * part * QK_PLANE, 16 + n, v));
}

QK_INLINE li grid_scale(const uint8_t *p, size_t part, int j, int v) {
    return marks_scale(plane(p + 2 * part * QK_PLANE, 16 + j, v));
}

#endif
