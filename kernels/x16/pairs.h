/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a dot product is several instructions, the products of a few steps are first added as int16 (lp,
 * lanes.h). Levels with one instruction have the same names here, so that shared code compiles. */
#ifndef QSF_KERNELS_X16_PAIRS_H
#define QSF_KERNELS_X16_PAIRS_H

#include "kernels/x16/lanes.h"

#ifndef L_PAIRS
#define L_PAIRS 0
typedef li lp;
#define L_HOLD_PAIRS(p) L_HOLD(p)
QK_INLINE lp l_pairs_of(li w, li x) { return l_dot(l_set(0), w, x); }
QK_INLINE lp l_pairs_signed(li w, li x) { return l_dot_signed(l_set(0), w, x); }
QK_INLINE lp l_pairs(lp acc, li w, li x) { return l_dot(acc, w, x); }
QK_INLINE li l_dot_pairs(li acc, lp p) { return l_add(acc, p); }
QK_INLINE li l_dot_scaled(li acc, lp p, li scale) { return l_add(acc, l_mul(p, scale)); }
QK_INLINE li l_pair_scale(li scale) { return scale; }
#endif

/* How many steps of a sub-block of n, a power of two, can be added as pairs without leaving int16 if no
 * weight is larger than max; 0 without L_PAIRS. */
QK_INLINE int steps_of_pairs(int max, int n) {
    const int fit = 32767 / (2 * 127 * max), steps = fit >= 8 ? fit / 8 * 8 : fit >= 4 ? 4 : fit >= 2 ? 2 : 1;
    return !L_PAIRS ? 0 : steps < n ? steps : n;
}

#endif
