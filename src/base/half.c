/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Half precision by arithmetic: every step is exact in double precision except the one rounding. */
#include "src/base/half.h"

#include <math.h>
#include <string.h>

enum { EXP_MAX = 15, EXP_MIN = -14, MANTISSA = 10, INFINITE = 0x7c00 };

float qsf_half_value(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, man = h & 0x3ffu, exp = h >> 10 & 31u;
    uint32_t bits;
    float v;
    if (exp == 0) {
        v = (float)man * 0x1p-24f;
        return sign ? -v : v;
    }
    bits = sign | (exp == 31 ? 0x7f800000u : (exp + 112) << 23) | man << 13;
    memcpy(&v, &bits, sizeof v);
    return v;
}

uint16_t qsf_half_bits(double x) {
    const unsigned sign = signbit(x) ? 0x8000u : 0;
    const double a = fabs(x);
    int exp;
    if (isnan(x)) return (uint16_t)(sign | INFINITE | 0x200u);
    if (a >= (double)QSF_HALF_MAX) return (uint16_t)(sign | (INFINITE - 1));
    (void)frexp(a, &exp);
    if (--exp < EXP_MIN || a == 0) exp = EXP_MIN;
    /* In units of the last place; a carry into the exponent gives the correct result. */
    const unsigned units = (unsigned)lrint(ldexp(a, MANTISSA - exp));
    const unsigned bits = units + ((unsigned)(exp - EXP_MIN) << MANTISSA);
    return (uint16_t)(sign | (bits < INFINITE ? bits : INFINITE - 1));
}

uint16_t qsf_half_step(uint16_t h, int step) {
    const int size = h & 0x7fff, at = (h & 0x8000 ? -size : size) + step;
    if (at >= INFINITE || at <= -INFINITE) return h;
    return (uint16_t)(at < 0 ? 0x8000 | -at : at);
}
