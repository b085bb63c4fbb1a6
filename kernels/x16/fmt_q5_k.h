/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q5_K: nibbles as in Q4_K, and bit j of byte l of 32 is bit 4 of element 32j + l. */
#ifndef QSF_KERNELS_X16_FMT_Q5_K_H
#define QSF_KERNELS_X16_FMT_Q5_K_H

#include "kernels/x16/planes.h"

/* 2 * (32 * 31 * 127) * 63, two sums times their scales, stays below 2^24. */
enum { FMT_PLANES = 43, FMT_PLANE_AT = 4, FMT_HALVES = 2, FMT_HALF_AT = 0 };
enum {
    FMT_SUB = 16,
    FMT_SCALED = 1,
    FMT_MAX = 31,
    FMT_OFF = 0,
    FMT_SIGNED = 0,
    FMT_MINS = 8,
    FMT_INT16 = 1,
    FMT_CENTER = 16
};

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const li low = l_field(plane(p, 11 + s / 16 * 8 + s % 8, v), s / 8 % 2 * 4, 4);
    return l_or(low, bit_to(plane(p, 3 + s % 8, v), s / 8, 4));
}

QK_INLINE li fmt_scale(const uint8_t *p, int j, int v) { return kscale_scale(p, j / 2, v); }

QK_INLINE li fmt_mins(const uint8_t *p, int i, int v) { return kscale_mins(p, i, v); }

#endif
