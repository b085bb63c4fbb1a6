/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The 12 bytes of 6-bit scales and minimums of a Q4_K or Q5_K super-block (layout: ggml-org/ggml,
 * src/ggml-common.h): bytes 0-3 hold scales 0-3, bytes 4-7 minimums 0-3 in their low six bits;
 * bytes 8-11 hold the low nibbles of scale (low) and minimum (high) 4-7, whose top two bits are
 * the top bits of bytes 0-3 and 4-7. */
#ifndef QSF_KERNELS_KSCALE_H
#define QSF_KERNELS_KSCALE_H

#include "kernels/load.h"

/* Stores eight scales in *sc and eight minimums in *mn, one byte each, number 0 in the lowest byte. */
static inline void qk_kscale_unpack(const uint8_t *s, uint64_t *sc, uint64_t *mn) {
    const uint32_t a = qk_load_u32(s), b = qk_load_u32(s + 4), c = qk_load_u32(s + 8);
    const uint32_t sc_hi = (c & 0x0f0f0f0fu) | ((a >> 2) & 0x30303030u);
    const uint32_t mn_hi = ((c >> 4) & 0x0f0f0f0fu) | ((b >> 2) & 0x30303030u);
    *sc = (uint64_t)(a & 0x3f3f3f3fu) | (uint64_t)sc_hi << 32;
    *mn = (uint64_t)(b & 0x3f3f3f3fu) | (uint64_t)mn_hi << 32;
}

#endif
