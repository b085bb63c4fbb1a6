/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Half precision numbers (IEEE 754 binary16) as files hold and quantizers need them: rounded to nearest even, never to
 * infinity, and with neighbours. Pure functions, any thread. */
#ifndef QSF_BASE_HALF_H
#define QSF_BASE_HALF_H

#include <stdint.h>

#define QSF_HALF_MAX 65504.0f

/* The value of 16 bits, exactly. */
float qsf_half_value(uint16_t h);
/* The nearest half, ties to even. Beyond +-65504 it is +-65504; of NaN a quiet one. */
uint16_t qsf_half_bits(double x);
/* The value of the nearest half. */
static inline float qsf_half_round(double x) { return qsf_half_value(qsf_half_bits(x)); }
/* The next half above (step 1) or below (-1) the value of h, which stays where there is none. */
uint16_t qsf_half_step(uint16_t h, int step);

/* A half as it lies in a file: two bytes, the lower first. */
static inline void qsf_half_put(uint8_t *p, uint16_t h) {
    p[0] = (uint8_t)h;
    p[1] = (uint8_t)(h >> 8);
}
static inline float qsf_half_get(const uint8_t *p) {
    return qsf_half_value((uint16_t)(p[0] | p[1] << 8));
}

#endif
