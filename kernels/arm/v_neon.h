/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A vector of floats for NEON, under the names used by ops_*.h. */
#ifndef QSF_KERNELS_ARM_V_NEON_H
#define QSF_KERNELS_ARM_V_NEON_H

#include <arm_neon.h>

#include "kernels/act.h"
#include "kernels/generic/ops.h"
#include "kernels/load.h"

#define QK_INLINE   static inline __attribute__((always_inline))
#define QK_FN(name) qk_##name##_neon

typedef float32x4_t vf;
typedef int32x4_t vi;
enum { V = 4, V_REGISTERS = 32 };
#define V_HOLD(v) __asm__("" : "+w"(v))

/* All bits set in the first n (0..4) lanes. */
QK_INLINE uint32x4_t v_lanes(size_t n) {
    static const uint32_t number[V] = { 0, 1, 2, 3 };
    return vcltq_u32(vld1q_u32(number), vdupq_n_u32((uint32_t)n));
}

/* Loaded as bytes, because addresses may be unaligned. _some: the first n < V elements; memory after them is
 * not touched, the other lanes are zero. */
QK_INLINE vf v_load(const float *p) { return vreinterpretq_f32_u8(vld1q_u8((const void *)p)); }
QK_INLINE vf v_load_some(const float *p, size_t n) {
    float all[V] = { 0 };
    memcpy(all, p, n * sizeof all[0]);
    return v_load(all);
}
QK_INLINE vf v_load_some_or(const float *p, size_t n, vf other) {
    return vbslq_f32(v_lanes(n), v_load_some(p, n), other);
}
QK_INLINE void v_store(float *p, vf v) { vst1q_u8((void *)p, vreinterpretq_u8_f32(v)); }
/* An ordinary store: NEON has no intrinsic for a non-temporal one. */
QK_INLINE void v_stream(float *p, vf v) { v_store(p, v); }
QK_INLINE void v_streamed(void) {}
QK_INLINE void v_store_some(float *p, size_t n, vf v) {
    float all[V];
    v_store(all, v);
    memcpy(p, all, n * sizeof all[0]);
}
QK_INLINE vf v_keep(vf v, size_t n) {
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(v), v_lanes(n)));
}

QK_INLINE vf v_load_half(const void *p) { return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p))); }
/* See v_avx512.h. */
QK_INLINE void v_of_halves(uint16x8_t h, vf out[2]) {
    out[0] = vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(h)));
    out[1] = vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(h)));
}
QK_INLINE void v_load_e4m3(const void *p, vf out[2]) {
    const uint16x8_t b = vshlq_n_u16(vreinterpretq_u16_s16(vmovl_s8(vreinterpret_s8_u8(vld1_u8(p)))), 7);
    const uint16x8_t carry = vaddq_u16(vandq_u16(b, vdupq_n_u16(0x3f80)), vdupq_n_u16(0x80));
    v_of_halves(vbslq_u16(vdupq_n_u16(0x4000), carry, b), out);
}
QK_INLINE void v_load_e5m2(const void *p, vf out[2]) {
    v_of_halves(vshlq_n_u16(vmovl_u8(vld1_u8(p)), 8), out);
}
/* V signed bytes. */
QK_INLINE vf v_load_bytes(const void *p) {
    uint32_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    const int16x8_t h = vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(bytes)));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(h)));
}
QK_INLINE vf v_load_half_some(const void *p, size_t n) {
    uint16_t h[V] = { 0 };
    memcpy(h, p, n * sizeof h[0]);
    return v_load_half(h);
}
QK_INLINE void v_store_half(void *p, vf v) { vst1_u8(p, vreinterpret_u8_f16(vcvt_f16_f32(v))); }
QK_INLINE vf v_set(float a) { return vdupq_n_f32(a); }
QK_INLINE vf v_add(vf a, vf b) { return vaddq_f32(a, b); }
QK_INLINE vf v_sub(vf a, vf b) { return vsubq_f32(a, b); }
QK_INLINE vf v_mul(vf a, vf b) { return vmulq_f32(a, b); }
QK_INLINE vf v_div(vf a, vf b) { return vdivq_f32(a, b); }
QK_INLINE vf v_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
QK_INLINE vf v_fnma(vf a, vf b, vf c) { return vfmsq_f32(c, a, b); }
/* Returns the second operand if either is NaN; fmax would return NaN. */
QK_INLINE vf v_max(vf a, vf b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
QK_INLINE vf v_min(vf a, vf b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
QK_INLINE float v_sum(vf v) { return vaddvq_f32(v); }
QK_INLINE void v_sums(float out[8], const vf v[8]) {
    for (int i = 0; i < 8; i++) out[i] = v_sum(v[i]);
}
QK_INLINE float v_largest(vf v) { return vmaxvq_f32(v); }
QK_INLINE unsigned v_mask(uint32x4_t lanes) {
    static const uint32_t bit[V] = { 1, 2, 4, 8 };
    return vaddvq_u32(vandq_u32(lanes, vld1q_u32(bit)));
}
QK_INLINE unsigned v_equal(vf a, vf b) { return v_mask(vceqq_f32(a, b)); }

/* v, but 0 in lanes where x is below the bound. */
QK_INLINE vf v_not_below(vf v, vf x, float bound) {
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(v), vcltq_f32(x, vdupq_n_f32(bound))));
}

/* Lanes of x where a is not 0, otherwise 0; a NaN is not 0. */
QK_INLINE vf v_where(vf a, vf x) {
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(x), vceqq_f32(a, vdupq_n_f32(0))));
}
QK_INLINE vf v_round(vf v) { return vrndnq_f32(v); }
/* 2^n for n in [-126, 127]. */
QK_INLINE vf v_power(vi n) { return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23)); }
/* v * 2^n for integer n in [-220, 190], in two steps: 2^n itself may not be representable. */
QK_INLINE vf v_ldexp(vf v, vf n) {
    const vi whole = vcvtq_s32_f32(n), first = vshrq_n_s32(whole, 1);
    return vmulq_f32(vmulq_f32(v, v_power(first)), v_power(vsubq_s32(whole, first)));
}

/* The lowest nine bits of a lane become its sign and exponent; all other bits are 0. */
QK_INLINE vf v_exponent(vf v) { return vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(v), 23)); }

QK_INLINE vi v_abs_bits(const float *p) {
    return vandq_s32(vreinterpretq_s32_f32(v_load(p)), vdupq_n_s32(0x7fffffff));
}
QK_INLINE vi v_max_bits(vi a, vi b) { return vmaxq_s32(a, b); }
QK_INLINE uint32_t v_largest_bits(vi v) { return (uint32_t)vmaxvq_s32(v); }
QK_INLINE int32_t v_sum_int(vi v) { return vaddvq_s32(v); }
/* Rounds to nearest even. */
QK_INLINE vi v_whole(vf v) { return vcvtnq_s32_f32(v); }
/* Stores V integers of 8 bits. */
QK_INLINE void v_put_bytes(int8_t *p, vi q) {
    const int16x4_t h = vqmovn_s32(q);
    const uint32_t bytes = vget_lane_u32(vreinterpret_u32_s8(vqmovn_s16(vcombine_s16(h, h))), 0);
    memcpy(p, &bytes, sizeof bytes);
}
/* Rounds to nearest even, stores V bytes, returns them as integers. */
QK_INLINE vi v_store_bytes(int8_t *p, vf v) {
    const vi q = v_whole(v);
    v_put_bytes(p, q);
    return q;
}

/* Neighbours: (0, 0, 2, 2), (1, 1, 3, 3), (1, 0, 3, 2); a - b in even lanes and a + b in odd ones. */
QK_INLINE vf v_dup_even(vf v) { return vtrn1q_f32(v, v); }
QK_INLINE vf v_dup_odd(vf v) { return vtrn2q_f32(v, v); }
QK_INLINE vf v_swap(vf v) { return vrev64q_f32(v); }
QK_INLINE vf v_addsub(vf a, vf b) {
    const uint32x4_t even = vreinterpretq_u32_u64(vdupq_n_u64(0x80000000u));
    return vaddq_f32(a, vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(b), even)));
}
/* Every other lane of a, then of b. */
QK_INLINE vf v_evens(vf a, vf b) { return vuzp1q_f32(a, b); }
QK_INLINE vf v_odds(vf a, vf b) { return vuzp2q_f32(a, b); }

/* Rows become columns. */
QK_INLINE void v_transpose(vf x[V]) {
    const float64x2_t a = vreinterpretq_f64_f32(vtrn1q_f32(x[0], x[1])),
                      b = vreinterpretq_f64_f32(vtrn2q_f32(x[0], x[1])),
                      c = vreinterpretq_f64_f32(vtrn1q_f32(x[2], x[3])),
                      d = vreinterpretq_f64_f32(vtrn2q_f32(x[2], x[3]));
    x[0] = vreinterpretq_f32_f64(vtrn1q_f64(a, c));
    x[1] = vreinterpretq_f32_f64(vtrn1q_f64(b, d));
    x[2] = vreinterpretq_f32_f64(vtrn2q_f64(a, c));
    x[3] = vreinterpretq_f32_f64(vtrn2q_f64(b, d));
}

QK_INLINE vf v_load_bf16(const void *p) {
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
}
QK_INLINE vf v_load_bf16_some(const void *p, size_t n) {
    uint16_t h[V] = { 0 };
    memcpy(h, p, n * sizeof h[0]);
    return v_load_bf16(h);
}
/* a < b ? yes : no */

/* A bit per lane: a > b; a >= b. */
QK_INLINE unsigned v_above(vf a, vf b) { return v_mask(vcgtq_f32(a, b)); }
QK_INLINE unsigned v_at_least(vf a, vf b) { return v_mask(vcgeq_f32(a, b)); }

#endif
