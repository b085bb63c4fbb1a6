/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The first three planes of Q4_K and Q5_K: 6-bit scales and minimums as in kernels/kscale.h, one row per
 * lane. */
#ifndef QSF_KERNELS_X16_KSCALE_X16_H
#define QSF_KERNELS_X16_KSCALE_X16_H

#include "kernels/x16/super.h"

/* Four bytes of scales (which = 0) or minimums (1), numbers 0-3 or 4-7. */
QK_INLINE li kscale_bytes(const uint8_t *p, int upper, int which, int v) {
    const li top = plane(p, which, v);
    if (!upper) return l_and(top, l_bytes(0x3f));
    return l_or(l_and(l_shr(plane(p, 2, v), 4 * which), l_bytes(0x0f)), l_and(l_shr(top, 2), l_bytes(0x30)));
}

QK_INLINE li fmt_scale(const uint8_t *p, int j, int v) {
    const int n = j * FMT_SUB / 32;
    return byte_of(kscale_bytes(p, n / 4, 0, v), n % 4);
}

QK_INLINE li fmt_mins(const uint8_t *p, int i, int v) { return pair_of(kscale_bytes(p, i / 2, 1, v), i % 2); }

#endif
