/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A vector of floats for WebAssembly's SIMD128, under the names used by ops_*.h. Each operation rounds and
 * adds in the same order as that of SSE4.2 (x86/v_sse42.h), so that both levels compute the same bits: there
 * is no FMA, v_fma rounds twice, and conversions of half floats work on bits. */
#ifndef QSF_KERNELS_WASM_V_WASM_H
#define QSF_KERNELS_WASM_V_WASM_H

#include <wasm_simd128.h>

#include "kernels/act.h"
#include "kernels/generic/ops.h"
#include "kernels/load.h"

#define QK_INLINE   static inline __attribute__((always_inline))
#define QK_FN(name) qk_##name##_wasm

typedef v128_t vf;
typedef v128_t vi;
/* As many as the processors that run this mostly have. */
enum { V = 4, V_REGISTERS = 16 };
#define V_HOLD(v) (void)(v)

QK_INLINE vi v_int(uint32_t a) { return wasm_u32x4_splat(a); }

/* All bits set in the first n (0..4) lanes. */
QK_INLINE vi v_lanes(size_t n) { return wasm_i32x4_gt(v_int((uint32_t)n), wasm_i32x4_const(0, 1, 2, 3)); }

/* _some: the first n < V elements; memory after them is not touched, the other lanes are zero. */
QK_INLINE vf v_load(const float *p) { return wasm_v128_load(p); }
QK_INLINE vf v_load_some(const float *p, size_t n) {
    float all[V] = { 0 };
    for (size_t i = 0; i < n && i < V; i++) all[i] = p[i];
    return v_load(all);
}
QK_INLINE vf v_load_some_or(const float *p, size_t n, vf other) {
    return wasm_v128_bitselect(v_load_some(p, n), other, v_lanes(n));
}
QK_INLINE void v_store(float *p, vf v) { wasm_v128_store(p, v); }
/* An ordinary store: there is no non-temporal one. */
QK_INLINE void v_stream(float *p, vf v) { v_store(p, v); }
QK_INLINE void v_streamed(void) {}
QK_INLINE void v_store_some(float *p, size_t n, vf v) {
    float all[V];
    v_store(all, v);
    for (size_t i = 0; i < n && i < V; i++) p[i] = all[i];
}
QK_INLINE vf v_keep(vf v, size_t n) { return wasm_v128_and(v, v_lanes(n)); }

/* Four halves in the low parts of four lanes. Denormals are integer multiples of 2^-24; a NaN becomes
 * quiet. */
QK_INLINE vf v_of_halves(vi h) {
    const vi a = wasm_v128_and(h, v_int(0x7fff)), shifted = wasm_i32x4_shl(a, 13);
    const vi odd = wasm_i32x4_gt(a, v_int(0x7bff)), nan = wasm_i32x4_gt(a, v_int(0x7c00));
    vi bits = wasm_i32x4_add(shifted, v_int(112u << 23));
    bits = wasm_i32x4_add(bits, wasm_v128_and(odd, v_int(112u << 23)));
    bits = wasm_v128_or(bits, wasm_v128_and(nan, v_int(0x400000)));
    const vf small = wasm_f32x4_mul(wasm_f32x4_convert_i32x4(a), wasm_f32x4_splat(0x1p-24f));
    const vf size = wasm_v128_bitselect(small, bits, wasm_i32x4_lt(a, v_int(0x400)));
    return wasm_v128_or(size, wasm_i32x4_shl(wasm_v128_xor(h, a), 16));
}
QK_INLINE vf v_load_half(const void *p) { return v_of_halves(wasm_u32x4_load16x4(p)); }
/* Eight signed bytes to two vectors of integers. */
QK_INLINE void v_widen(const void *p, vi out[2]) {
    const vi b = wasm_i16x8_load8x8(p);
    out[0] = wasm_i32x4_extend_low_i16x8(b);
    out[1] = wasm_i32x4_extend_high_i16x8(b);
}
/* See v_avx512.h. */
QK_INLINE void v_load_e4m3(const void *p, vf out[2]) {
    vi b[2];
    v_widen(p, b);
    for (int i = 0; i < 2; i++) {
        b[i] = wasm_i32x4_shl(b[i], 7);
        const vi carry = wasm_i32x4_add(wasm_v128_and(b[i], v_int(0x3f80)), v_int(0x80));
        out[i] = v_of_halves(
            wasm_v128_or(wasm_v128_and(carry, v_int(0x4000)), wasm_v128_and(b[i], v_int(0xbf80))));
    }
}
QK_INLINE void v_load_e5m2(const void *p, vf out[2]) {
    vi b[2];
    v_widen(p, b);
    for (int i = 0; i < 2; i++) out[i] = v_of_halves(wasm_v128_and(wasm_i32x4_shl(b[i], 8), v_int(0xff00)));
}
/* V signed bytes. */
QK_INLINE vf v_load_bytes(const void *p) {
    const vi words = wasm_i16x8_extend_low_i8x16(wasm_v128_load32_zero(p));
    return wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(words));
}
QK_INLINE vf v_load_half_some(const void *p, size_t n) {
    uint16_t h[V] = { 0 };
    memcpy(h, p, n * sizeof h[0]);
    return v_load_half(h);
}
/* See qk_f32_to_f16. */
QK_INLINE vi v_to_halves(vf bits) {
    const vi a = wasm_v128_and(bits, v_int(0x7fffffff)), b = wasm_i32x4_sub(a, v_int(112u << 23));
    const vi even = wasm_v128_and(wasm_u32x4_shr(a, 13), v_int(1));
    const vi usual = wasm_u32x4_shr(wasm_i32x4_add(wasm_i32x4_add(b, v_int(0xfff)), even), 13);
    const vi small = wasm_i32x4_sub(wasm_f32x4_add(a, wasm_f32x4_splat(0.5f)), v_int(0x3f000000));
    const vi nan = wasm_v128_or(v_int(0x7e00), wasm_v128_and(wasm_u32x4_shr(a, 13), v_int(0x3ff)));
    vi h = wasm_v128_bitselect(small, usual, wasm_i32x4_lt(a, v_int(0x38800000)));
    h = wasm_v128_bitselect(v_int(0x7c00), h, wasm_i32x4_gt(a, v_int(0x477fefff)));
    h = wasm_v128_bitselect(nan, h, wasm_i32x4_gt(a, v_int(0x7f800000)));
    return wasm_v128_or(h, wasm_v128_and(wasm_u32x4_shr(bits, 16), v_int(0x8000)));
}
QK_INLINE void v_store_half(void *p, vf v) {
    const vi h = v_to_halves(v);
    wasm_v128_store64_lane(p, wasm_u16x8_narrow_i32x4(h, h), 0);
}
QK_INLINE vf v_set(float a) { return wasm_f32x4_splat(a); }
QK_INLINE vf v_add(vf a, vf b) { return wasm_f32x4_add(a, b); }
QK_INLINE vf v_sub(vf a, vf b) { return wasm_f32x4_sub(a, b); }
QK_INLINE vf v_mul(vf a, vf b) { return wasm_f32x4_mul(a, b); }
QK_INLINE vf v_div(vf a, vf b) { return wasm_f32x4_div(a, b); }
QK_INLINE vf v_fma(vf a, vf b, vf c) { return wasm_f32x4_add(wasm_f32x4_mul(a, b), c); }
QK_INLINE vf v_fnma(vf a, vf b, vf c) { return wasm_f32x4_sub(c, wasm_f32x4_mul(a, b)); }
/* Returns the second operand if either is NaN: pmax and pmin return their first. */
QK_INLINE vf v_max(vf a, vf b) { return wasm_f32x4_pmax(b, a); }
QK_INLINE vf v_min(vf a, vf b) { return wasm_f32x4_pmin(b, a); }
/* Lanes 2, 3, 2, 3 and 1, 1, 3, 3. */
QK_INLINE vf v_upper(vf v) { return wasm_i64x2_shuffle(v, v, 1, 1); }
QK_INLINE vf v_dup_odd(vf v) { return wasm_i32x4_shuffle(v, v, 1, 1, 3, 3); }
QK_INLINE float v_sum(vf v) {
    v = v_add(v, v_upper(v));
    return wasm_f32x4_extract_lane(v_add(v, v_dup_odd(v)), 0);
}
QK_INLINE void v_sums(float out[8], const vf v[8]) {
    for (int i = 0; i < 8; i++) out[i] = v_sum(v[i]);
}
QK_INLINE float v_largest(vf v) {
    v = v_max(v, v_upper(v));
    return wasm_f32x4_extract_lane(v_max(v, v_dup_odd(v)), 0);
}
QK_INLINE unsigned v_equal(vf a, vf b) { return (unsigned)wasm_i32x4_bitmask(wasm_f32x4_eq(a, b)); }

/* v, but 0 in lanes where x is below the bound. */
QK_INLINE vf v_not_below(vf v, vf x, float bound) {
    return wasm_v128_andnot(v, wasm_f32x4_lt(x, v_set(bound)));
}

/* Lanes of x where a is not 0, otherwise 0; a NaN is not 0. */
QK_INLINE vf v_where(vf a, vf x) { return wasm_v128_and(x, wasm_f32x4_ne(a, v_set(0))); }
QK_INLINE vf v_round(vf v) { return wasm_f32x4_nearest(v); }
/* Rounds to nearest even. */
QK_INLINE vi v_whole(vf v) { return wasm_i32x4_trunc_sat_f32x4(v_round(v)); }
/* 2^n for n in [-126, 127]. */
QK_INLINE vf v_power(vi n) { return wasm_i32x4_shl(wasm_i32x4_add(n, v_int(127)), 23); }
/* v * 2^n for integer n in [-220, 190], in two steps: 2^n itself may not be representable. */
QK_INLINE vf v_ldexp(vf v, vf n) {
    const vi whole = v_whole(n), first = wasm_i32x4_shr(whole, 1);
    return v_mul(v_mul(v, v_power(first)), v_power(wasm_i32x4_sub(whole, first)));
}

/* The lowest nine bits of a lane become its sign and exponent; all other bits are 0. */
QK_INLINE vf v_exponent(vf v) { return wasm_i32x4_shl(v, 23); }

QK_INLINE vi v_abs_bits(const float *p) { return wasm_v128_and(v_load(p), v_int(0x7fffffff)); }
QK_INLINE vi v_max_bits(vi a, vi b) { return wasm_i32x4_max(a, b); }
QK_INLINE uint32_t v_largest_bits(vi v) {
    v = wasm_i32x4_max(v, v_upper(v));
    return (uint32_t)wasm_i32x4_extract_lane(wasm_i32x4_max(v, v_dup_odd(v)), 0);
}
QK_INLINE int32_t v_sum_int(vi v) {
    v = wasm_i32x4_add(v, v_upper(v));
    return wasm_i32x4_extract_lane(wasm_i32x4_add(v, v_dup_odd(v)), 0);
}
/* Stores V integers of 8 bits. */
QK_INLINE void v_put_bytes(int8_t *p, vi q) {
    const vi h = wasm_i16x8_narrow_i32x4(q, q);
    wasm_v128_store32_lane(p, wasm_i8x16_narrow_i16x8(h, h), 0);
}
/* Rounds to nearest even, stores V bytes, returns them as integers. */
QK_INLINE vi v_store_bytes(int8_t *p, vf v) {
    const vi q = v_whole(v);
    v_put_bytes(p, q);
    return q;
}

/* Neighbours: (0, 0, 2, 2), (1, 0, 3, 2); a - b in even lanes and a + b in odd ones. */
QK_INLINE vf v_dup_even(vf v) { return wasm_i32x4_shuffle(v, v, 0, 0, 2, 2); }
QK_INLINE vf v_swap(vf v) { return wasm_i32x4_shuffle(v, v, 1, 0, 3, 2); }
QK_INLINE vf v_addsub(vf a, vf b) {
    return v_add(a, wasm_v128_xor(b, wasm_u32x4_const(0x80000000u, 0, 0x80000000u, 0)));
}
/* Every other lane of a, then of b. */
QK_INLINE vf v_evens(vf a, vf b) { return wasm_i32x4_shuffle(a, b, 0, 2, 4, 6); }
QK_INLINE vf v_odds(vf a, vf b) { return wasm_i32x4_shuffle(a, b, 1, 3, 5, 7); }

/* Rows become columns. */
QK_INLINE void v_transpose(vf x[V]) {
    const vf a = wasm_i32x4_shuffle(x[0], x[1], 0, 4, 1, 5), b = wasm_i32x4_shuffle(x[0], x[1], 2, 6, 3, 7),
             c = wasm_i32x4_shuffle(x[2], x[3], 0, 4, 1, 5), d = wasm_i32x4_shuffle(x[2], x[3], 2, 6, 3, 7);
    x[0] = wasm_i64x2_shuffle(a, c, 0, 2);
    x[1] = wasm_i64x2_shuffle(a, c, 1, 3);
    x[2] = wasm_i64x2_shuffle(b, d, 0, 2);
    x[3] = wasm_i64x2_shuffle(b, d, 1, 3);
}

QK_INLINE vf v_load_bf16(const void *p) { return wasm_i32x4_shl(wasm_u32x4_load16x4(p), 16); }
QK_INLINE vf v_load_bf16_some(const void *p, size_t n) {
    uint16_t h[V] = { 0 };
    memcpy(h, p, n * sizeof h[0]);
    return v_load_bf16(h);
}

/* A bit per lane: a > b; a >= b. */
QK_INLINE unsigned v_above(vf a, vf b) { return (unsigned)wasm_i32x4_bitmask(wasm_f32x4_gt(a, b)); }
QK_INLINE unsigned v_at_least(vf a, vf b) { return (unsigned)wasm_i32x4_bitmask(wasm_f32x4_ge(a, b)); }

#endif
