/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Unaligned little-endian loads and bit casts that every kernel file needs. Big-endian machines are refused
 * at compile time: blocks and activations are read exactly as stored in the file. */
#ifndef QSF_KERNELS_LOAD_H
#define QSF_KERNELS_LOAD_H

#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "kernels need a little-endian machine"
#endif

static inline uint16_t qk_load_u16(const void *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t qk_load_u32(const void *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t qk_load_u64(const void *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline float qk_load_f32(const void *p) {
    float v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t qk_bits_of(float f) {
    uint32_t v;
    memcpy(&v, &f, sizeof v);
    return v;
}

static inline float qk_float_of(uint32_t bits) {
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

#endif
