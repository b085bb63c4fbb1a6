/* SPDX-License-Identifier: GPL-3.0-or-later */
/* xoshiro256** and splitmix64. */
#include "src/sample/rng.h"
#include "src/base/platform.h"

#include "src/base/clock.h"

static uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static uint64_t splitmix(uint64_t *x) {
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void qsf_rng_seed(QsfRng *r, uint64_t seed) {
    for (int i = 0; i < 4; i++) r->s[i] = splitmix(&seed);
}

uint64_t qsf_rng_next(QsfRng *r) {
    uint64_t *s = r->s, result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

double qsf_rng_unit(QsfRng *r) { return (double)(qsf_rng_next(r) >> 11) * 0x1p-53; }

uint64_t qsf_random_seed(void) {
    uint32_t v;
    if (qsf_os_random(&v, sizeof v)) return v;
    uint64_t t = qsf_now_ns(); /* fallback before the kernel's entropy pool is ready */
    return splitmix(&t) >> 32;
}
