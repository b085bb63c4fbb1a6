/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Seeded random numbers, the same on every machine: xoshiro256** with its state filled by splitmix64
 * (Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", 2021; public domain algorithms). */
#ifndef QSF_SAMPLE_RNG_H
#define QSF_SAMPLE_RNG_H

#include <stdint.h>

typedef struct QsfRng {
    uint64_t s[4]; /* never all zero */
} QsfRng;

/* Any seed is allowed; the same one gives the same numbers on every machine. */
void qsf_rng_seed(QsfRng *r, uint64_t seed);
/* Returns 64 random bits. */
uint64_t qsf_rng_next(QsfRng *r);
/* Uniform in [0, 1) with 53 random bits. */
double qsf_rng_unit(QsfRng *r);
/* From the operating system, for a random seed. 32 bits, so that it is short enough to be typed again. */
uint64_t qsf_random_seed(void);

#endif
