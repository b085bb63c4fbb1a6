/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q2_K: x = d * scale * q - dmin * minimum; a byte holds a scale (low) and a minimum (high). */
#ifndef QSF_KERNELS_X16_FMT_Q2_K_H
#define QSF_KERNELS_X16_FMT_Q2_K_H

#include "kernels/x16/planes.h"

/* 16 * (16 * 3 * 127) * 15, all sums times their scales, stays below 2^24. */
enum { FMT_PLANES = 20, FMT_PLANE_AT = 0, FMT_HALVES = 2, FMT_HALF_AT = 80 };
enum {
    FMT_SUB = 16,
    FMT_SCALED = 1,
    FMT_MAX = 3,
    FMT_OFF = 0,
    FMT_SIGNED = 0,
    FMT_MINS = 16,
    FMT_INT16 = 1,
    FMT_CENTER = 0
};

#define FMT_SHIFT(s) two_bits_shift(s)

QK_INLINE li fmt_in_place(const uint8_t *p, int s, int v) {
    return two_bits_in_place(plane(p, 4 + two_bits_plane(s), v), s);
}

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    return two_bits(plane(p, 4 + two_bits_plane(s), v), s);
}

QK_INLINE li fmt_scale(const uint8_t *p, int j, int v) {
    return l_and(l_shr(plane(p, j / 4, v), j % 4 * 8), l_set(15));
}

QK_INLINE li fmt_mins(const uint8_t *p, int i, int v) {
    return pair_of(l_and(l_shr(plane(p, i / 2, v), 4), l_bytes(15)), i % 2);
}

#endif
