/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IQ1_M: planes of indices, planes of their upper bits with signs, low pairs of the scales; halves d and the
 * upper bits of the scales. */
#ifndef QSF_KERNELS_X16_FMT_IQ1_M_H
#define QSF_KERNELS_X16_FMT_IQ1_M_H

#define FMT_AHEAD 1024

#include "kernels/x16/planes.h"

#include "kernels/grid_iq1.h"
#include "kernels/x16/rearrange_grid.h"

enum { FMT_PLANES = 13, FMT_PLANE_AT = 0, FMT_HALVES = 2, FMT_HALF_AT = 52 };
enum {
    FMT_SUB = 16,
    FMT_SCALED = 1,
    FMT_MAX = 18,
    FMT_OFF = 9,
    FMT_SIGNED = 0,
    FMT_MINS = 0,
    FMT_INT16 = 1,
    FMT_CENTER = 0
};
#define FMT_UNIT    0x1p-3f
#define FMT_FIX_ROW qk_fix_iq1_m

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
    /* A bit of each byte where the sign is not set, then two for the two steps, in every byte. */
    const li s = l_xor(l_and(l_shr(grid_high(p, part, n, v), GRID_HIGH_AT(n) + 3), l_bytes(1)), l_bytes(1));
    const li pairs = keep(l_or(l_or(s, l_shr(s, 6)), l_or(l_shr(s, 12), l_shr(s, 18))), 0x55u);
    return l_mul(pairs, l_set(0x03030303));
}

QK_INLINE li grid_scale(const uint8_t *p, size_t part, int j, int v) {
    /* A part has every other 16 bits of the pairs and every other byte of the upper bits: loaded so that they
     * are the low half of a dword and the high half of a word. What is next to them is ignored. */
    const li pairs = plane(p + part * 2, 12, v),
             top = l_words(p + part - 1 + FMT_PLANES * QK_PLANE + QK_HALF + v * L * 2);
    const li low = j ? l_shr(pairs, 2 * j - 1) : l_shl(pairs, 1);
    return l_or(l_or(keep(low, 6), keep(l_shr(top, 5 + j), 8)), l_set(1));
}

#endif
