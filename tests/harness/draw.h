/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random numbers, the same in every run of a test. One sequence per test program. */
#ifndef QSF_TESTS_DRAW_H
#define QSF_TESTS_DRAW_H

#include <math.h>
#include <stdint.h>

/* The state of the sequence; not 0. */
static uint64_t qsf_draw_state = 88172645463325252u;

/* G. Marsaglia's xorshift. In (0, 1). */
static inline double qsf_draw_uniform(void) {
    uint64_t bits = qsf_draw_state;
    bits ^= bits << 13;
    bits ^= bits >> 7;
    bits ^= bits << 17;
    qsf_draw_state = bits;
    return ((double)(bits >> 11) + 0.5) * 0x1p-53;
}

/* Normal, with mean 0 and variance 1. */
static inline double qsf_draw_gauss(void) {
    const double size = sqrt(-2 * log(qsf_draw_uniform()));
    return size * cos(6.283185307179586 * qsf_draw_uniform());
}

#endif
