/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IQ4_XS: x = d * scale * value of a nibble; nibbles of each 32 elements as in Q4_0, 6-bit scales with an
 * offset of 32. */
#ifndef QSF_KERNELS_X16_FMT_IQ4_XS_H
#define QSF_KERNELS_X16_FMT_IQ4_XS_H

#include "kernels/x16/planes.h"

/* 32 * 127 * 127 * 32, one sum times its scale, stays below 2^24. */
enum { FMT_PLANES = 33, FMT_PLANE_AT = 4, FMT_HALVES = 2, FMT_HALF_AT = 0 };
enum {
    FMT_SUB = 32,
    FMT_SCALED = 1,
    FMT_MAX = 127,
    FMT_OFF = 0,
    FMT_SIGNED = 1,
    FMT_MINS = 0,
    FMT_INT16 = 0,
    FMT_CENTER = 0
};

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const li q = plane(p, 1 + s / 8 * 4 + s % 4, v);
    return l_biased(l_lookup(qk_iq4_values, l_field(q, s / 4 % 2 * 4, 4)));
}

QK_INLINE li fmt_scale(const uint8_t *p, int j, int v) {
    const li low = l_and(l_shr(plane(p, 0, v), 4 * j), l_set(15));
    const li top = l_words(p + FMT_PLANES * QK_PLANE + QK_HALF + v * L * 2);
    const li high = j < 2 ? l_shl(top, 4 - 2 * j) : l_shr(top, 2 * j - 4);
    return l_sub(l_or(low, l_and(high, l_set(48))), l_set(32));
}

QK_INLINE li fmt_mins(const uint8_t *p, int i, int v) {
    (void)p, (void)i, (void)v;
    return nothing();
}

#endif
