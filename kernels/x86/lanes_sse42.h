/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SSE4.2 lanes (kernels/x16/lanes.h): no F16C, no FMA. */
#ifndef QSF_KERNELS_X86_LANES_SSE42_H
#define QSF_KERNELS_X86_LANES_SSE42_H

#include <nmmintrin.h>

#include "kernels/x16/lanes.h"

typedef __m128i li;
typedef __m128 lf;
enum { L = 4, L_BIAS = 0 };

#define L_HOLD(v) __asm__("" : "+x"(v))

QK_INLINE li l_load(const void *p) { return _mm_loadu_si128(p); }
QK_INLINE void l_store(void *p, li v) { _mm_storeu_si128(p, v); }
QK_INLINE li l_dup(const void *p) { return _mm_set1_epi32((int)qk_load_u32(p)); }
QK_INLINE li l_set(int32_t a) { return _mm_set1_epi32(a); }
QK_INLINE li l_bytes(int a) { return _mm_set1_epi8((char)a); }
QK_INLINE li l_and(li a, li b) { return _mm_and_si128(a, b); }
QK_INLINE li l_or(li a, li b) { return _mm_or_si128(a, b); }
QK_INLINE li l_xor(li a, li b) { return _mm_xor_si128(a, b); }
QK_INLINE li l_add(li a, li b) { return _mm_add_epi32(a, b); }
QK_INLINE li l_sub(li a, li b) { return _mm_sub_epi32(a, b); }
QK_INLINE li l_mul(li a, li b) { return _mm_mullo_epi32(a, b); }
QK_INLINE li l_shl(li v, int n) { return _mm_slli_epi32(v, n); }
QK_INLINE li l_shr(li v, int n) { return _mm_srli_epi32(v, n); }
QK_INLINE li l_sar(li v, int n) { return _mm_srai_epi32(v, n); }
QK_INLINE li l_field(li v, int n, int bits) { return l_and(n ? l_shr(v, n) : v, l_bytes((1 << bits) - 1)); }
QK_INLINE li l_add8(li a, li b) { return _mm_add_epi8(a, b); }
QK_INLINE li l_sub8(li a, li b) { return _mm_sub_epi8(a, b); }
QK_INLINE li l_subs8(li a, li b) { return _mm_subs_epu8(a, b); }
QK_INLINE li l_min8(li a, li b) { return _mm_min_epu8(a, b); }
QK_INLINE li l_lookup(const void *table, li i) { return _mm_shuffle_epi8(_mm_loadu_si128(table), i); }
QK_INLINE li l_negate(li v, li marks, int bit) {
    return _mm_sign_epi8(v, l_or(l_shl(marks, 7 - bit), l_bytes(1)));
}
QK_INLINE li l_points4(const uint32_t *grid, const uint8_t *i) {
    const __m128i a = _mm_insert_epi32(_mm_cvtsi32_si128((int)grid[qk_load_u16(i)]),
                                       (int)grid[qk_load_u16(i + 4)], 1);
    const __m128i b = _mm_insert_epi32(_mm_cvtsi32_si128((int)grid[qk_load_u16(i + 8)]),
                                       (int)grid[qk_load_u16(i + 12)], 1);
    return _mm_unpacklo_epi64(a, b);
}
QK_INLINE __m128 l_two_points(const uint64_t *grid, const uint8_t *i) {
    const __m128d low = _mm_castsi128_pd(_mm_loadl_epi64((const void *)&grid[qk_load_u16(i)]));
    return _mm_castpd_ps(_mm_loadh_pd(low, (const double *)(const void *)&grid[qk_load_u16(i + 4)]));
}
QK_INLINE void l_points8(li to[2], const uint64_t *grid, const uint8_t *i) {
    const __m128 a = l_two_points(grid, i), b = l_two_points(grid, i + 8);
    to[0] = _mm_castps_si128(_mm_shuffle_ps(a, b, 0x88));
    to[1] = _mm_castps_si128(_mm_shuffle_ps(a, b, 0xdd));
}

#define L_PAIRS 1
typedef li lp;
#define L_HOLD_PAIRS(p) L_HOLD(p)
/* The pairs of pmaddubsw do not saturate: 2 * 128 * 127. */
QK_INLINE lp l_pairs_of(li w, li x) { return _mm_maddubs_epi16(w, x); }
QK_INLINE lp l_pairs(lp acc, li w, li x) { return _mm_add_epi16(acc, l_pairs_of(w, x)); }
QK_INLINE li l_dot16(li acc, li a, li b) { return _mm_add_epi32(acc, _mm_madd_epi16(a, b)); }
QK_INLINE li l_dot_pairs(li acc, lp p) { return l_dot16(acc, p, _mm_set1_epi16(1)); }
QK_INLINE li l_dot_scaled(li acc, lp p, li scale) { return l_dot16(acc, p, scale); }
QK_INLINE li l_pair_scale(li scale) { return l_or(l_and(scale, l_set(0xffff)), l_shl(scale, 16)); }
QK_INLINE li l_dot(li acc, li w, li x) { return l_dot_pairs(acc, l_pairs_of(w, x)); }
QK_INLINE li l_biased(li w) { return w; }
/* The sign of w is moved to x. */
QK_INLINE lp l_pairs_signed(li w, li x) { return l_pairs_of(_mm_sign_epi8(w, w), _mm_sign_epi8(x, w)); }
QK_INLINE li l_dot_signed(li acc, li w, li x) { return l_dot_pairs(acc, l_pairs_signed(w, x)); }
#define L_MARKS 1
QK_INLINE li l_magnitudes(li w) { return _mm_sign_epi8(w, w); }
QK_INLINE li l_marks(li w) { return _mm_cmpgt_epi8(_mm_setzero_si128(), w); }

QK_INLINE lf l_float(li v) { return _mm_cvtepi32_ps(v); }
QK_INLINE li l_int(lf v) { return _mm_cvtps_epi32(v); }
QK_INLINE lf l_setf(float a) { return _mm_set1_ps(a); }
QK_INLINE lf l_zerof(void) { return _mm_setzero_ps(); }
QK_INLINE lf l_addf(lf a, lf b) { return _mm_add_ps(a, b); }
QK_INLINE lf l_subf(lf a, lf b) { return _mm_sub_ps(a, b); }
QK_INLINE lf l_mulf(lf a, lf b) { return _mm_mul_ps(a, b); }
QK_INLINE lf l_fma(lf a, lf b, lf c) { return _mm_add_ps(_mm_mul_ps(a, b), c); }
QK_INLINE lf l_loadf(const float *p) { return _mm_loadu_ps(p); }
QK_INLINE void l_storef(float *p, lf v) { _mm_storeu_ps(p, v); }
QK_INLINE li l_words(const void *p) { return _mm_cvtepu16_epi32(_mm_loadl_epi64(p)); }
QK_INLINE li l_octets(const void *p) { return _mm_cvtepu8_epi32(_mm_cvtsi32_si128((int)qk_load_u32(p))); }
QK_INLINE lf l_float_of(li v) { return _mm_castsi128_ps(v); }
QK_INLINE void l_prefetch(const void *p) { _mm_prefetch(p, _MM_HINT_T0); }
QK_INLINE void l_prefetch_far(const void *p) { _mm_prefetch(p, _MM_HINT_T2); }

/* A float16 whose exponent and fraction are moved to the position of a float's is 2^112 too small. One exact
 * multiplication corrects this, also for denormals; infinities and NaNs are given the rest of their exponent
 * separately. */
QK_INLINE lf l_halves(const void *p) {
    const __m128i h = _mm_cvtepu16_epi32(_mm_loadl_epi64(p));
    const __m128i sign = _mm_slli_epi32(_mm_and_si128(h, _mm_set1_epi32(0x8000)), 16);
    const __m128i body = _mm_slli_epi32(_mm_and_si128(h, _mm_set1_epi32(0x7fff)), 13);
    const __m128i inf = _mm_and_si128(_mm_cmpgt_epi32(body, _mm_set1_epi32(0x0f7fffff)),
                                      _mm_set1_epi32(0x7f800000));
    const __m128 v = _mm_mul_ps(_mm_castsi128_ps(body), _mm_set1_ps(0x1p112f));
    return _mm_castsi128_ps(_mm_or_si128(_mm_or_si128(_mm_castps_si128(v), inf), sign));
}

QK_INLINE void l_planes4(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    for (int v = 0; v < 4; v++, dst += 16) {
        const __m128i a = l_load(row[4 * v] + at), b = l_load(row[4 * v + 1] + at),
                      c = l_load(row[4 * v + 2] + at), d = l_load(row[4 * v + 3] + at);
        const __m128i ab0 = _mm_unpacklo_epi32(a, b), ab1 = _mm_unpackhi_epi32(a, b);
        const __m128i cd0 = _mm_unpacklo_epi32(c, d), cd1 = _mm_unpackhi_epi32(c, d);
        l_store(dst, _mm_unpacklo_epi64(ab0, cd0));
        l_store(dst + QK_PLANE, _mm_unpackhi_epi64(ab0, cd0));
        l_store(dst + 2 * QK_PLANE, _mm_unpacklo_epi64(ab1, cd1));
        l_store(dst + 3 * QK_PLANE, _mm_unpackhi_epi64(ab1, cd1));
    }
}

#endif
