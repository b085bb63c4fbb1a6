/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Codes of a few bits as a little-endian bit stream: code i starts at bit i * bits, counted from the lowest
 * bit of the first byte. For 2 and 4 bits that is the order of design §5 too (byte i/4, bits 2(i%4); low
 * nibble first). Pure functions, any thread. */
#ifndef QSF_CONVERT_QUANT_BITS_H
#define QSF_CONVERT_QUANT_BITS_H

#include <stddef.h>
#include <stdint.h>

/* Packs n codes below 2^bits into n * bits / 8 bytes, which must be an integer; bits is 1 to 8. */
static inline void qsf_bits_put(uint8_t *out, const uint8_t *codes, size_t n, unsigned bits) {
    uint32_t held = 0;
    unsigned have = 0;
    for (size_t i = 0; i < n; i++) {
        held |= (uint32_t)codes[i] << have;
        for (have += bits; have >= 8; have -= 8, held >>= 8) *out++ = (uint8_t)held;
    }
}

static inline void qsf_bits_get(uint8_t *codes, const uint8_t *in, size_t n, unsigned bits) {
    uint32_t held = 0;
    unsigned have = 0;
    for (size_t i = 0; i < n; i++) {
        for (; have < bits; have += 8) held |= (uint32_t)*in++ << have;
        codes[i] = (uint8_t)(held & ((1u << bits) - 1));
        held >>= bits;
        have -= bits;
    }
}

#endif
