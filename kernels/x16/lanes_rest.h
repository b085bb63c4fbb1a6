/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a level does not define (kernels/x16/lanes.h), so that shared code compiles. The including file has
 * included its lanes. */
#ifndef QSF_KERNELS_X16_LANES_REST_H
#define QSF_KERNELS_X16_LANES_REST_H

#include "kernels/x16/lanes.h"

/* Keeps a vector in its register. The load ports have no time to load it again for every product, and if the
 * compiler reorders the sums, they need more registers than there are. */
#ifndef L_HOLD
#define L_HOLD(v) (void)(v)
#endif

#ifndef L_RAW
#define L_RAW 0
#endif
#ifndef L_APART
QK_INLINE li l_apart(li v) { return v; }
QK_INLINE li l_dot_apart(li acc, li a, li b) { return l_dot16(acc, a, b); }
#endif
#ifndef L_WIDE
#define L_WIDE 0
#endif
#ifndef L_SIGNED
#define L_SIGNED 0
#endif
#ifndef L_COLS
#define L_COLS 3
#endif
#ifndef L_TWO
#define L_TWO 0
#endif
#ifndef L_LANES
#define L_LANES 0
QK_INLINE li l_dot_lane(li acc, li w, li x, int i) { return (void)i, l_dot(acc, w, x); }
QK_INLINE li l_dot_apart_lane(li acc, li w, li x, int i) { return (void)i, l_dot_apart(acc, w, x); }
#endif
#ifndef L_MATRIX
#define L_MATRIX 0
#endif
#ifndef L_WORDS
#define L_WORDS 0
QK_INLINE li l_low_words(li v) { return v; }
QK_INLINE li l_high_words(li v) { return v; }
QK_INLINE li l_mul16(li a, li b) { return (void)b, a; }
#endif

#ifndef L_MARKS
#define L_MARKS 0
QK_INLINE li l_magnitudes(li w) { return w; }
QK_INLINE li l_marks(li w) { return w; }
#endif

#ifndef L_NARROW
#define L_NARROW 0
#endif

/* Where a dot product is one instruction. */
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
