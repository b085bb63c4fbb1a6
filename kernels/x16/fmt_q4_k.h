/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q4_K: x = d * scale * q - dmin * minimum. */
#ifndef QSF_KERNELS_X16_FMT_Q4_K_H
#define QSF_KERNELS_X16_FMT_Q4_K_H

#include "kernels/x16/planes.h"

/* 4 * (32 * 15 * 127) * 63, four sums times their scales, stays below 2^24. */
enum { FMT_PLANES = 35, FMT_PLANE_AT = 4, FMT_HALVES = 2, FMT_HALF_AT = 0 };
enum {
    FMT_SUB = 32,
    FMT_SCALED = 1,
    FMT_MAX = 15,
    FMT_OFF = 0,
    FMT_SIGNED = 0,
    FMT_MINS = 8,
    FMT_INT16 = 1,
    FMT_CENTER = 8
};

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    return l_field(plane(p, 3 + s / 16 * 8 + s % 8, v), s / 8 % 2 * 4, 4);
}

QK_INLINE li fmt_scale(const uint8_t *p, int j, int v) { return kscale_scale(p, j, v); }

QK_INLINE li fmt_mins(const uint8_t *p, int i, int v) { return kscale_mins(p, i, v); }

#endif
