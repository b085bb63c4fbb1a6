/* SPDX-License-Identifier: GPL-3.0-or-later */
/* TQ2_0: x = d * (q - 1), bit pairs as in Q2_K. */
#ifndef QSF_KERNELS_X16_FMT_TQ2_0_H
#define QSF_KERNELS_X16_FMT_TQ2_0_H

#define FMT_COLD 1

#include "kernels/x16/planes.h"

enum { FMT_PLANES = 16, FMT_PLANE_AT = 0, FMT_HALVES = 1, FMT_HALF_AT = 64 };
enum {
    FMT_SUB = 64,
    FMT_SCALED = 0,
    FMT_MAX = 3,
    FMT_OFF = 1,
    FMT_SIGNED = 0,
    FMT_MINS = 0,
    FMT_INT16 = 0,
    FMT_CENTER = 0
};

#define FMT_SHIFT(s) two_bits_shift(s)

QK_INLINE li fmt_in_place(const uint8_t *p, int s, int v) {
    return two_bits_in_place(plane(p, two_bits_plane(s), v), s);
}

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) { return two_bits(plane(p, two_bits_plane(s), v), s); }

QK_INLINE li fmt_scale(const uint8_t *p, int j, int v) {
    (void)p, (void)j, (void)v;
    return nothing();
}

QK_INLINE li fmt_mins(const uint8_t *p, int i, int v) {
    (void)p, (void)i, (void)v;
    return nothing();
}

#endif
