/* SPDX-License-Identifier: GPL-3.0-or-later */
/* NEON lanes (kernels/x16/lanes.h). With L_DOTPROD, which lanes_dotprod.h defines, the dot product
 * instructions are used, with L_I8MM (lanes_i8mm.h) also those of small matrices. */
#ifndef QSF_KERNELS_ARM_LANES_NEON_H
#define QSF_KERNELS_ARM_LANES_NEON_H

#include <arm_neon.h>

#include "kernels/x16/lanes.h"

typedef int32x4_t li;
typedef float32x4_t lf;
enum { L = 4, L_BIAS = 0 };
#define L_SIGNED  1
#define L_COLS    4
#define L_TWO     1
#define L_HOLD(v) __asm__ volatile("" : "+w"(v))
#define L_WIDE    1

/* Lanes as bytes, dwords and qwords. */
QK_INLINE int8x16_t l_s8(li v) { return vreinterpretq_s8_s32(v); }
QK_INLINE uint8x16_t l_u8(li v) { return vreinterpretq_u8_s32(v); }
QK_INLINE uint32x4_t l_u32(li v) { return vreinterpretq_u32_s32(v); }
QK_INLINE uint64x2_t l_u64(li v) { return vreinterpretq_u64_s32(v); }
QK_INLINE li l_of_u8(uint8x16_t v) { return vreinterpretq_s32_u8(v); }
QK_INLINE li l_of_u32(uint32x4_t v) { return vreinterpretq_s32_u32(v); }
QK_INLINE li l_of_u64(uint64x2_t v) { return vreinterpretq_s32_u64(v); }

QK_INLINE li l_load(const void *p) { return l_of_u8(vld1q_u8(p)); }
QK_INLINE void l_store(void *p, li v) { vst1q_u8(p, l_u8(v)); }
QK_INLINE li l_dup(const void *p) { return vdupq_n_s32((int32_t)qk_load_u32(p)); }
QK_INLINE li l_set(int32_t a) { return vdupq_n_s32(a); }
QK_INLINE li l_bytes(int a) { return l_of_u8(vdupq_n_u8((uint8_t)a)); }
QK_INLINE li l_and(li a, li b) { return vandq_s32(a, b); }
QK_INLINE li l_or(li a, li b) { return vorrq_s32(a, b); }
QK_INLINE li l_xor(li a, li b) { return veorq_s32(a, b); }
QK_INLINE li l_add(li a, li b) { return vaddq_s32(a, b); }
QK_INLINE li l_sub(li a, li b) { return vsubq_s32(a, b); }
QK_INLINE li l_mul(li a, li b) { return vmulq_s32(a, b); }
/* Operators, because the shift intrinsics require a constant even where nothing is inlined. */
QK_INLINE li l_shl(li v, int n) { return l_of_u32(l_u32(v) << vdupq_n_u32((uint32_t)n)); }
QK_INLINE li l_shr(li v, int n) { return l_of_u32(l_u32(v) >> vdupq_n_u32((uint32_t)n)); }
QK_INLINE li l_sar(li v, int n) { return v >> vdupq_n_s32(n); }
QK_INLINE li l_field(li v, int n, int bits) {
    const li low = n ? l_of_u8(l_u8(v) >> vdupq_n_u8((uint8_t)n)) : v;
    return n + bits == 8 ? low : l_and(low, l_bytes((1 << bits) - 1));
}
QK_INLINE li l_add8(li a, li b) { return l_of_u8(vaddq_u8(l_u8(a), l_u8(b))); }
QK_INLINE li l_sub8(li a, li b) { return l_of_u8(vsubq_u8(l_u8(a), l_u8(b))); }
QK_INLINE li l_subs8(li a, li b) { return l_of_u8(vqsubq_u8(l_u8(a), l_u8(b))); }
QK_INLINE li l_min8(li a, li b) { return l_of_u8(vminq_u8(l_u8(a), l_u8(b))); }
QK_INLINE li l_lookup(const void *table, li i) { return l_of_u8(vqtbl1q_u8(vld1q_u8(table), l_u8(i))); }
QK_INLINE li l_negate(li v, li marks, int bit) {
    const uint8x16_t mask = vtstq_u8(l_u8(marks), l_u8(l_bytes(1 << bit)));
    return vreinterpretq_s32_s8(vbslq_s8(mask, vnegq_s8(l_s8(v)), l_s8(v)));
}
QK_INLINE li l_points4(const uint32_t *grid, const uint8_t *i) {
    uint32x4_t v = vdupq_n_u32(grid[qk_load_u16(i)]);
    v = vld1q_lane_u32(&grid[qk_load_u16(i + 4)], v, 1);
    v = vld1q_lane_u32(&grid[qk_load_u16(i + 8)], v, 2);
    return vreinterpretq_s32_u32(vld1q_lane_u32(&grid[qk_load_u16(i + 12)], v, 3));
}
QK_INLINE li l_two_points(const uint64_t *grid, const uint8_t *i) {
    return vreinterpretq_s32_u64(
        vcombine_u64(vld1_u64(&grid[qk_load_u16(i)]), vld1_u64(&grid[qk_load_u16(i + 4)])));
}
QK_INLINE void l_points8(li to[2], const uint64_t *grid, const uint8_t *i) {
    const li a = l_two_points(grid, i), b = l_two_points(grid, i + 8);
    to[0] = vuzp1q_s32(a, b);
    to[1] = vuzp2q_s32(a, b);
}

#ifdef L_DOTPROD
QK_INLINE li l_dot(li acc, li w, li x) { return vdotq_s32(acc, l_s8(w), l_s8(x)); }
#define L_LANES 1
/* The intrinsic requires a constant even where nothing is inlined. */
QK_INLINE li l_dot_lane(li acc, li w, li x, int i) {
    switch (i) {
    case 0: return vdotq_laneq_s32(acc, l_s8(w), l_s8(x), 0);
    case 1: return vdotq_laneq_s32(acc, l_s8(w), l_s8(x), 1);
    case 2: return vdotq_laneq_s32(acc, l_s8(w), l_s8(x), 2);
    default: return vdotq_laneq_s32(acc, l_s8(w), l_s8(x), 3);
    }
}
#define LANE(i)                                                                                     \
    vmlal_high_laneq_s16(vmlal_laneq_s16(acc, vget_low_s16(p), vreinterpretq_s16_s32(x), 2 * i), p, \
                         vreinterpretq_s16_s32(x), 2 * i + 1)
QK_INLINE li l_dot_apart_lane(li acc, li w, li x, int i) {
    const int16x8_t p = vreinterpretq_s16_s32(w);
    switch (i) {
    case 0: return LANE(0);
    case 1: return LANE(1);
    case 2: return LANE(2);
    default: return LANE(3);
    }
}
#undef LANE
#else
#define L_PAIRS         1
/* Products of the lower and the upper half of a vector. The sums of two neighbours fit: 2 * 128 * 127. */
typedef struct lp {
    int16x8_t low, high;
} lp;
#define L_HOLD_PAIRS(p) __asm__ volatile("" : "+w"((p).low), "+w"((p).high))
QK_INLINE lp l_pairs_of(li w, li x) {
    return (lp){ vmull_s8(vget_low_s8(l_s8(w)), vget_low_s8(l_s8(x))), vmull_high_s8(l_s8(w), l_s8(x)) };
}
QK_INLINE lp l_pairs_signed(li w, li x) { return l_pairs_of(w, x); }
QK_INLINE lp l_pairs(lp acc, li w, li x) {
    return (lp){ vmlal_s8(acc.low, vget_low_s8(l_s8(w)), vget_low_s8(l_s8(x))),
                 vmlal_high_s8(acc.high, l_s8(w), l_s8(x)) };
}
QK_INLINE li l_dot_pairs(li acc, lp p) { return vpadalq_s16(acc, vpaddq_s16(p.low, p.high)); }
QK_INLINE li l_dot_scaled(li acc, lp p, li scale) {
    return vmlaq_s32(acc, vpaddlq_s16(vpaddq_s16(p.low, p.high)), scale);
}
QK_INLINE li l_pair_scale(li scale) { return scale; }
QK_INLINE li l_dot(li acc, li w, li x) { return l_dot_pairs(acc, l_pairs_of(w, x)); }
#endif
QK_INLINE li l_biased(li w) { return w; }
QK_INLINE li l_dot_signed(li acc, li w, li x) { return l_dot(acc, w, x); }
QK_INLINE li l_dot16(li acc, li a, li b) {
    const int16x8_t p = vreinterpretq_s16_s32(a), q = vreinterpretq_s16_s32(b);
    return vaddq_s32(acc, vpaddq_s32(vmull_s16(vget_low_s16(p), vget_low_s16(q)), vmull_high_s16(p, q)));
}
#define L_APART 1
QK_INLINE li l_apart(li v) { return vreinterpretq_s32_s16(vshrn_high_n_s32(vmovn_s32(v), v, 16)); }
QK_INLINE li l_dot_apart(li acc, li a, li b) {
    const int16x8_t p = vreinterpretq_s16_s32(a), q = vreinterpretq_s16_s32(b);
    return vmlal_high_s16(vmlal_s16(acc, vget_low_s16(p), vget_low_s16(q)), p, q);
}

QK_INLINE lf l_float(li v) { return vcvtq_f32_s32(v); }
QK_INLINE li l_int(lf v) { return vcvtq_s32_f32(v); }
QK_INLINE lf l_setf(float a) { return vdupq_n_f32(a); }
QK_INLINE lf l_zerof(void) { return vdupq_n_f32(0); }
QK_INLINE lf l_addf(lf a, lf b) { return vaddq_f32(a, b); }
QK_INLINE lf l_subf(lf a, lf b) { return vsubq_f32(a, b); }
QK_INLINE lf l_mulf(lf a, lf b) { return vmulq_f32(a, b); }
QK_INLINE lf l_fma(lf a, lf b, lf c) { return vfmaq_f32(c, a, b); }
QK_INLINE lf l_loadf(const float *p) { return vreinterpretq_f32_u8(vld1q_u8((const void *)p)); }
QK_INLINE void l_storef(float *p, lf v) { vst1q_u8((void *)p, vreinterpretq_u8_f32(v)); }
QK_INLINE lf l_halves(const void *p) { return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p))); }
QK_INLINE li l_words(const void *p) { return l_of_u32(vmovl_u16(vreinterpret_u16_u8(vld1_u8(p)))); }
QK_INLINE li l_octets(const void *p) {
    const uint16x8_t w = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(qk_load_u32(p))));
    return l_of_u32(vmovl_u16(vget_low_u16(w)));
}
QK_INLINE lf l_float_of(li v) { return vreinterpretq_f32_s32(v); }
#if defined L_I8MM && defined __ARM_FEATURE_MATMUL_INT8
#define L_MATRIX 1
QK_INLINE li l_matrix(li acc, li w, li x) { return vmmlaq_s32(acc, l_s8(w), l_s8(x)); }
QK_INLINE li l_bits(lf v) { return vreinterpretq_s32_f32(v); }
QK_INLINE li l_dup2(const void *p) { return l_of_u64(vdupq_lane_u64(vreinterpret_u64_u8(vld1_u8(p)), 0)); }
QK_INLINE void l_zip(li v[2]) {
    const int32x4x2_t zipped = vzipq_s32(v[0], v[1]);
    v[0] = zipped.val[0], v[1] = zipped.val[1];
}
QK_INLINE void l_unzip(li v[2]) {
    const int32x4x2_t apart = vuzpq_s32(v[0], v[1]);
    v[0] = apart.val[0], v[1] = apart.val[1];
}
QK_INLINE void l_zip2(li v[2]) {
    const uint64x2_t a = l_u64(v[0]), b = l_u64(v[1]);
    v[0] = l_of_u64(vzip1q_u64(a, b)), v[1] = l_of_u64(vzip2q_u64(a, b));
}
#endif
QK_INLINE void l_prefetch(const void *p) { __builtin_prefetch(p); }
QK_INLINE void l_prefetch_far(const void *p) { __builtin_prefetch(p, 0, 1); }

QK_INLINE void l_planes4(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    for (int v = 0; v < 4; v++, dst += 16) {
        const li a = l_load(row[4 * v] + at), b = l_load(row[4 * v + 1] + at),
                 c = l_load(row[4 * v + 2] + at), d = l_load(row[4 * v + 3] + at);
        const int64x2_t ab0 = vreinterpretq_s64_s32(vzip1q_s32(a, b)),
                        ab1 = vreinterpretq_s64_s32(vzip2q_s32(a, b));
        const int64x2_t cd0 = vreinterpretq_s64_s32(vzip1q_s32(c, d)),
                        cd1 = vreinterpretq_s64_s32(vzip2q_s32(c, d));
        l_store(dst, vreinterpretq_s32_s64(vzip1q_s64(ab0, cd0)));
        l_store(dst + QK_PLANE, vreinterpretq_s32_s64(vzip2q_s64(ab0, cd0)));
        l_store(dst + 2 * QK_PLANE, vreinterpretq_s32_s64(vzip1q_s64(ab1, cd1)));
        l_store(dst + 3 * QK_PLANE, vreinterpretq_s32_s64(vzip2q_s64(ab1, cd1)));
    }
}

#endif
