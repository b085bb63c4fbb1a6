/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IEEE 754 half precision, by bits: exact in both directions, round to nearest even. */
#include "kernels/load.h"
#include "kernels/ref/ref.h"

float qk_f16_to_f32(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, man = h & 0x3ffu, exp = (h >> 10) & 31u;
    if (exp == 31)
        return qk_float_of(sign | 0x7f800000u | man << 13 | (man ? 0x400000u : 0)); /* a NaN becomes quiet */
    if (exp == 0) return qk_float_of(sign | qk_bits_of((float)man * 0x1p-24f));
    return qk_float_of(sign | (exp + 112) << 23 | man << 13);
}

uint16_t qk_f32_to_f16(float f) {
    const uint32_t bits = qk_bits_of(f), sign = bits >> 16 & 0x8000u;
    uint32_t a = bits & 0x7fffffffu;
    if (a > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (a >> 13 & 0x3ffu));
    if (a >= 0x477ff000u) /* 65520: halfway to the first value that is too large */
        return (uint16_t)(sign | 0x7c00u);
    /* Below 2^-14 one unit of the result is 2^-24, as is one unit of 0.5 in single precision. */
    if (a < 0x38800000u) return (uint16_t)(sign | (qk_bits_of(qk_float_of(a) + 0.5f) - 0x3f000000u));
    a -= 112u << 23;
    return (uint16_t)(sign | (a + 0xfffu + (a >> 13 & 1u)) >> 13);
}
