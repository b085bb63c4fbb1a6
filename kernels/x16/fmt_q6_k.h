/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q6_K: x = d * scale * (q - 32). Two halves of 128: four groups of 32 elements share 64 bytes of nibbles and
 * 32 bytes of upper bit pairs. */
#ifndef QSF_KERNELS_X16_FMT_Q6_K_H
#define QSF_KERNELS_X16_FMT_Q6_K_H

#include "kernels/x16/planes.h"

#define FMT_PLACE qk_q6_k_place

/* With the offset subtracted, 2 * (16 * 32 * 127) * 128, two sums times their scales, stays below 2^24. */
enum { FMT_PLANES = 52, FMT_PLANE_AT = 0, FMT_HALVES = 1, FMT_HALF_AT = 208 };
enum {
    FMT_SUB = 16,
    FMT_SCALED = 1,
    FMT_MAX = 63,
    FMT_OFF = 32,
    FMT_SIGNED = 0,
    FMT_MINS = 0,
    FMT_INT16 = 0,
    FMT_CENTER = 0
};

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const int half = s / 32, group = s / 8 % 4, i = s % 8;
    const li low = l_field(plane(p, FMT_PLACE(16 * half + group % 2 * 8 + i), v), group / 2 * 4, 4);
    const li top = plane(p, FMT_PLACE(32 + 8 * half + i), v);
    const li high = group < 2 ? l_shl(top, 4 - 2 * group) : l_shr(top, 2 * group - 4);
    return l_or(low, l_and(high, l_bytes(48)));
}

QK_INLINE li fmt_scale(const uint8_t *p, int j, int v) {
    return signed_byte_of(plane(p, FMT_PLACE(48 + j / 4), v), j % 4);
}

QK_INLINE li fmt_mins(const uint8_t *p, int i, int v) {
    (void)p, (void)i, (void)v;
    return nothing();
}

#endif
