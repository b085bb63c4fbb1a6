/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q3_K: x = d * scale * (q - 4). The low two bits are stored as in Q2_K; bit j of byte l of hmask is bit 2 of
 * element 32j + l. Sixteen scales of 6 bits: the low nibbles in eight bytes, the upper two bits in four. */
#ifndef QSF_KERNELS_X16_FMT_Q3_K_H
#define QSF_KERNELS_X16_FMT_Q3_K_H

#include "kernels/x16/planes.h"

#define FMT_PLACE qk_q3_k_place

/* 16 * (16 * 4 * 127) * 32, all sums times their scales, stays below 2^24. */
enum { FMT_PLANES = 27, FMT_PLANE_AT = 0, FMT_HALVES = 1, FMT_HALF_AT = 108 };
enum {
    FMT_SUB = 16,
    FMT_SCALED = 1,
    FMT_MAX = 7,
    FMT_OFF = 4,
    FMT_SIGNED = 0,
    FMT_MINS = 0,
    FMT_INT16 = 1,
    FMT_CENTER = 0
};

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    return l_or(two_bits(plane(p, FMT_PLACE(8 + two_bits_plane(s)), v), s),
                bit_to(plane(p, FMT_PLACE(s % 8), v), s / 8, 2));
}

QK_INLINE li fmt_scale(const uint8_t *p, int j, int v) {
    const int four = j / 4;
    const li low = l_and(l_shr(plane(p, FMT_PLACE(24 + four % 2), v), four / 2 * 4), l_bytes(15));
    const li top = plane(p, FMT_PLACE(26), v);
    const li high = l_and(four < 2 ? l_shl(top, 4 - 2 * four) : l_shr(top, 2 * four - 4), l_bytes(48));
    return l_sub(byte_of(l_or(low, high), j % 4), l_set(32));
}

QK_INLINE li fmt_mins(const uint8_t *p, int i, int v) {
    (void)p, (void)i, (void)v;
    return nothing();
}

#endif
