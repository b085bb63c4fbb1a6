/* SPDX-License-Identifier: GPL-3.0-or-later */
/* TQ1_0: x = d * (trit - 1). Five trits a byte: 32 bytes with elements 0-159, 16 with 160-239, then four with four each.
 * Trit n of byte q is (q * 3^n mod 256) * 3 >> 8. */
#ifndef QSF_KERNELS_X16_FMT_TQ1_0_H
#define QSF_KERNELS_X16_FMT_TQ1_0_H

#include "kernels/x16/super.h"

enum { FMT_PLANES = 13, FMT_PLANE_AT = 0, FMT_HALVES = 1, FMT_HALF_AT = 52 };
enum {
    FMT_SUB = 64,
    FMT_SCALED = 0,
    FMT_MAX = 2,
    FMT_OFF = 1,
    FMT_SIGNED = 0,
    FMT_MINS = 0,
    FMT_INT16 = 0,
    FMT_CENTER = 0
};

/* 3q >> 8 is how many of the thresholds 85 and 170 a byte exceeds. */
QK_INLINE li first_trit(li q) {
    const li one = l_bytes(1);
    return l_add8(l_min8(l_subs8(q, l_bytes(85)), one), l_min8(l_subs8(q, l_bytes(170)), one));
}

QK_INLINE li fmt_step(const uint8_t *p, int s, int v) {
    const int first = s < 40 ? 0 : s < 60 ? 40 : 60, width = s < 40 ? 8 : s < 60 ? 4 : 1;
    const int n = (s - first) / width;
    li q = plane(p, (s < 40 ? 0 : s < 60 ? 8 : 12) + (s - first) % width, v);
    QK_UNROLL for (int i = 0; i < n; i++) q = l_add8(q, l_add8(q, q));
    return first_trit(q);
}

QK_INLINE li fmt_scale(const uint8_t *p, int j, int v) {
    (void)p, (void)j, (void)v;
    return nothing();
}

QK_INLINE li fmt_mins(const uint8_t *p, int i, int v) {
    (void)p, (void)i, (void)v;
    return nothing();
}

#endif
