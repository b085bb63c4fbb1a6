/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Floats of eight bits (P. Micikevicius et al., "FP8 formats for deep learning") as half precision, exactly.
 * E5M2 is the upper half of that. E4M3 has no infinity, and a NaN only where all bits but the sign are set;
 * its exponent has another bias, so that its bits are a number that is 2^8 too small, denormals included. */
#ifndef QSF_KERNELS_F8_H
#define QSF_KERNELS_F8_H

#include <stdint.h>

#define QK_E4M3_SCALE 256.0f

static inline uint16_t qk_half_of_e4m3(uint8_t b) {
    const unsigned half = (b & 0x80u) << 8 | (b & 0x7fu) << 7;
    return (uint16_t)((b & 0x7f) == 0x7f ? 0x7e00 : half);
}

static inline uint16_t qk_half_of_e5m2(uint8_t b) { return (uint16_t)(b << 8); }

#endif
