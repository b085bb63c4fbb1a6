/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a dot product is several instructions, the products of a few steps are first added as int16 (lp,
 * lanes.h). */
#ifndef QSF_KERNELS_X16_PAIRS_H
#define QSF_KERNELS_X16_PAIRS_H

#include "kernels/x16/lanes_rest.h"

/* How many steps of a sub-block of n, a power of two, can be added as pairs without leaving int16 if no
 * weight is larger than max; 0 without L_PAIRS. */
QK_INLINE int steps_of_pairs(int max, int n) {
    const int fit = 32767 / (2 * 127 * max), steps = fit >= 8 ? fit / 8 * 8 : fit >= 4 ? 4 : fit >= 2 ? 2 : 1;
    return !L_PAIRS ? 0 : steps < n ? steps : n;
}

#endif
