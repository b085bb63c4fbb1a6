/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q5_K: nibbles as in Q4_K, and bit j of byte l of 32 is bit 4 of element 32j + l. */
#ifndef QSF_KERNELS_X16_FMT_Q5_K_H
#define QSF_KERNELS_X16_FMT_Q5_K_H

#include "kernels/x16/super.h"

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

#include "kernels/x16/kscale_x16.h"

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const li low = l_field(plane(p, 11 + s / 16 * 8 + s % 8, v), s / 8 % 2 * 4, 4);
    return l_or(low, bit_to(plane(p, 3 + s % 8, v), s / 8, 4));
}

#endif
