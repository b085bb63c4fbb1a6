/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Formats whose blocks store the low bits of all elements, then their upper bits, then the scales. In that
 * order three places of a block are read at once, and hardware that follows one ascending stream prefetches
 * too little. The planes of a group are therefore in the order in which they are first used: each function
 * returns the place of the plane that is number n in the order of the block (kernels/x16/x16.h).
 * man/qsf-format.5 has the same order, as layout 2. */
#ifndef QSF_KERNELS_X16_ORDER_H
#define QSF_KERNELS_X16_ORDER_H

/* The formats, as X(format, TYPE). */
#define QK_BY_USE(X) X(q6_k, Q6_K) X(q3_k, Q3_K)

/* Each half of the elements: two scales before what they multiply; the upper bits of a step next to its low
 * bits, which are used again, shifted, for two quarters; the low bits of the other quarters. */
static inline int qk_q6_k_place(int n) {
    enum { LOW = 0, TOP = 32, SCALES = 48, HALF = 26, SECOND = 17 };
    if (n >= SCALES) return (n - SCALES) / 2 * HALF + (n - SCALES) % 2 * SECOND;
    if (n >= TOP) return (n - TOP) / 8 * HALF + 1 + (n - TOP) % 8 * 2;
    return n / 16 * HALF + (n % 16 < 8 ? 2 + n % 8 * 2 : SECOND + 1 + n % 8);
}

/* The scales; the upper bits of all elements next to the low bits of the first half; the low
 * bits of the second half. */
static inline int qk_q3_k_place(int n) {
    enum { TOP = 0, LOW = 8, SCALES = 24 };
    if (n >= SCALES) return n - SCALES;
    if (n >= LOW) return n < LOW + 8 ? 4 + (n - LOW) * 2 : 3 + n;
    return 3 + n * 2;
}

#endif
