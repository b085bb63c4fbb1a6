/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Half precision (IEEE 754 binary16) for files and quantizers: rounding to nearest even, saturating instead
 * of overflowing to infinity, and stepping to adjacent values. Pure functions, any thread. */
#ifndef QSF_BASE_HALF_H
#define QSF_BASE_HALF_H

#include <stdint.h>

#define QSF_HALF_MAX 65504.0f

/* Returns the exact value of 16 bits. */
float qsf_half_value(uint16_t h);
/* Rounds to the nearest half, ties to even; saturates at +-65504. A NaN becomes a quiet NaN. */
uint16_t qsf_half_bits(double x);
/* Returns the value of the nearest half. */
static inline float qsf_half_round(double x) { return qsf_half_value(qsf_half_bits(x)); }
/* Returns the next half above (step 1) or below (-1) the value of h, or h if there is none. */
uint16_t qsf_half_step(uint16_t h, int step);

/* A half as stored in a file: two bytes, little-endian. */
static inline void qsf_half_put(uint8_t *p, uint16_t h) {
    p[0] = (uint8_t)h;
    p[1] = (uint8_t)(h >> 8);
}
static inline float qsf_half_get(const uint8_t *p) { return qsf_half_value((uint16_t)(p[0] | p[1] << 8)); }

#endif
