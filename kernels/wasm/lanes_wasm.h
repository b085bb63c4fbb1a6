/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lanes of WebAssembly's SIMD128 (kernels/x16/lanes.h): products of signed bytes are added as int16, as on
 * ARM without the dot product instructions. */
#ifndef QSF_KERNELS_WASM_LANES_WASM_H
#define QSF_KERNELS_WASM_LANES_WASM_H

#include <wasm_simd128.h>

#include "kernels/x16/lanes.h"

typedef v128_t li;
typedef v128_t lf;
enum { L = 4, L_BIAS = 0 };
#define L_SIGNED 1
#define L_WIDE   1

QK_INLINE li l_load(const void *p) { return wasm_v128_load(p); }
QK_INLINE void l_store(void *p, li v) { wasm_v128_store(p, v); }
QK_INLINE li l_dup(const void *p) { return wasm_v128_load32_splat(p); }
QK_INLINE li l_set(int32_t a) { return wasm_i32x4_splat(a); }
QK_INLINE li l_bytes(int a) { return wasm_i8x16_splat((int8_t)a); }
QK_INLINE li l_and(li a, li b) { return wasm_v128_and(a, b); }
QK_INLINE li l_or(li a, li b) { return wasm_v128_or(a, b); }
QK_INLINE li l_xor(li a, li b) { return wasm_v128_xor(a, b); }
QK_INLINE li l_add(li a, li b) { return wasm_i32x4_add(a, b); }
QK_INLINE li l_sub(li a, li b) { return wasm_i32x4_sub(a, b); }
QK_INLINE li l_mul(li a, li b) { return wasm_i32x4_mul(a, b); }
QK_INLINE li l_shl(li v, int n) { return wasm_i32x4_shl(v, (uint32_t)n); }
QK_INLINE li l_shr(li v, int n) { return wasm_u32x4_shr(v, (uint32_t)n); }
QK_INLINE li l_sar(li v, int n) { return wasm_i32x4_shr(v, (uint32_t)n); }
/* x86 has no shifts of bytes, so those of dwords are used. */
QK_INLINE li l_field(li v, int n, int bits) { return l_and(n ? l_shr(v, n) : v, l_bytes((1 << bits) - 1)); }
QK_INLINE li l_add8(li a, li b) { return wasm_i8x16_add(a, b); }
QK_INLINE li l_sub8(li a, li b) { return wasm_i8x16_sub(a, b); }
QK_INLINE li l_subs8(li a, li b) { return wasm_u8x16_sub_sat(a, b); }
QK_INLINE li l_min8(li a, li b) { return wasm_u8x16_min(a, b); }
QK_INLINE li l_lookup(const void *table, li i) { return wasm_i8x16_swizzle(wasm_v128_load(table), i); }
QK_INLINE li l_negate(li v, li marks, int bit) {
    const li one = l_bytes(1 << bit), mask = wasm_i8x16_eq(l_and(marks, one), one);
    return l_sub8(l_xor(v, mask), mask);
}
QK_INLINE li l_points4(const uint32_t *grid, const uint8_t *i) {
    return wasm_u32x4_make(grid[qk_load_u16(i)], grid[qk_load_u16(i + 4)], grid[qk_load_u16(i + 8)],
                           grid[qk_load_u16(i + 12)]);
}
QK_INLINE li l_two_points(const uint64_t *grid, const uint8_t *i) {
    return wasm_u64x2_make(grid[qk_load_u16(i)], grid[qk_load_u16(i + 4)]);
}
QK_INLINE void l_points8(li to[2], const uint64_t *grid, const uint8_t *i) {
    const li a = l_two_points(grid, i), b = l_two_points(grid, i + 8);
    to[0] = wasm_i32x4_shuffle(a, b, 0, 2, 4, 6);
    to[1] = wasm_i32x4_shuffle(a, b, 1, 3, 5, 7);
}

#define L_PAIRS 1
/* Products of the lower and the upper half of a vector. The sums of two neighbours fit: 2 * 128 * 127. */
typedef struct lp {
    v128_t low, high;
} lp;
#define L_HOLD_PAIRS(p) (void)(p)
QK_INLINE lp l_pairs_of(li w, li x) {
    return (lp){ wasm_i16x8_extmul_low_i8x16(w, x), wasm_i16x8_extmul_high_i8x16(w, x) };
}
QK_INLINE lp l_pairs_signed(li w, li x) { return l_pairs_of(w, x); }
QK_INLINE lp l_pairs(lp acc, li w, li x) {
    const lp p = l_pairs_of(w, x);
    return (lp){ wasm_i16x8_add(acc.low, p.low), wasm_i16x8_add(acc.high, p.high) };
}
/* Neighbours are added as int16, then again as int32. */
QK_INLINE li l_sum_pairs(lp p) {
    const li neighbours = wasm_i16x8_add(wasm_i16x8_shuffle(p.low, p.high, 0, 2, 4, 6, 8, 10, 12, 14),
                                         wasm_i16x8_shuffle(p.low, p.high, 1, 3, 5, 7, 9, 11, 13, 15));
    return wasm_i32x4_extadd_pairwise_i16x8(neighbours);
}
QK_INLINE li l_dot_pairs(li acc, lp p) { return l_add(acc, l_sum_pairs(p)); }
QK_INLINE li l_dot_scaled(li acc, lp p, li scale) { return l_add(acc, l_mul(l_sum_pairs(p), scale)); }
QK_INLINE li l_pair_scale(li scale) { return scale; }
QK_INLINE li l_dot(li acc, li w, li x) { return l_dot_pairs(acc, l_pairs_of(w, x)); }
QK_INLINE li l_biased(li w) { return w; }
QK_INLINE li l_dot_signed(li acc, li w, li x) { return l_dot(acc, w, x); }
QK_INLINE li l_dot16(li acc, li a, li b) { return l_add(acc, wasm_i32x4_dot_i16x8(a, b)); }

QK_INLINE lf l_float(li v) { return wasm_f32x4_convert_i32x4(v); }
QK_INLINE li l_int(lf v) { return wasm_i32x4_trunc_sat_f32x4(v); }
QK_INLINE lf l_setf(float a) { return wasm_f32x4_splat(a); }
QK_INLINE lf l_zerof(void) { return wasm_f32x4_splat(0); }
QK_INLINE lf l_addf(lf a, lf b) { return wasm_f32x4_add(a, b); }
QK_INLINE lf l_subf(lf a, lf b) { return wasm_f32x4_sub(a, b); }
QK_INLINE lf l_mulf(lf a, lf b) { return wasm_f32x4_mul(a, b); }
QK_INLINE lf l_fma(lf a, lf b, lf c) { return wasm_f32x4_add(wasm_f32x4_mul(a, b), c); }
QK_INLINE lf l_loadf(const float *p) { return wasm_v128_load(p); }
QK_INLINE void l_storef(float *p, lf v) { wasm_v128_store(p, v); }
QK_INLINE li l_words(const void *p) { return wasm_u32x4_load16x4(p); }
QK_INLINE li l_octets(const void *p) {
    return wasm_u32x4_extend_low_u16x8(wasm_u16x8_extend_low_u8x16(wasm_v128_load32_zero(p)));
}
QK_INLINE lf l_float_of(li v) { return v; }
/* SIMD128 has no instruction for this. */
QK_INLINE void l_prefetch(const void *p) { (void)p; }
QK_INLINE void l_prefetch_far(const void *p) { (void)p; }

/* A float16 whose exponent and fraction are moved to the position of a float's is 2^112 too small. One exact
 * multiplication corrects this, also for denormals; infinities and NaNs are given the rest of their exponent
 * separately. */
QK_INLINE lf l_halves(const void *p) {
    const li h = l_words(p), sign = l_shl(l_and(h, l_set(0x8000)), 16);
    const li body = l_shl(l_and(h, l_set(0x7fff)), 13);
    const li inf = l_and(wasm_i32x4_gt(body, l_set(0x0f7fffff)), l_set(0x7f800000));
    return l_or(l_or(l_mulf(body, l_setf(0x1p112f)), inf), sign);
}

QK_INLINE void l_planes4(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    for (int v = 0; v < 4; v++, dst += 16) {
        const li a = l_load(row[4 * v] + at), b = l_load(row[4 * v + 1] + at),
                 c = l_load(row[4 * v + 2] + at), d = l_load(row[4 * v + 3] + at);
        const li ab0 = wasm_i32x4_shuffle(a, b, 0, 4, 1, 5), ab1 = wasm_i32x4_shuffle(a, b, 2, 6, 3, 7);
        const li cd0 = wasm_i32x4_shuffle(c, d, 0, 4, 1, 5), cd1 = wasm_i32x4_shuffle(c, d, 2, 6, 3, 7);
        l_store(dst, wasm_i64x2_shuffle(ab0, cd0, 0, 2));
        l_store(dst + QK_PLANE, wasm_i64x2_shuffle(ab0, cd0, 1, 3));
        l_store(dst + 2 * QK_PLANE, wasm_i64x2_shuffle(ab1, cd1, 0, 2));
        l_store(dst + 3 * QK_PLANE, wasm_i64x2_shuffle(ab1, cd1, 1, 3));
    }
}

#endif
