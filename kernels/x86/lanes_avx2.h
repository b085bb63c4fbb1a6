/* SPDX-License-Identifier: GPL-3.0-or-later */
/* AVX2 lanes (kernels/x16/lanes.h). With L_VNNI, which lanes_avxvnni.h defines, AVX-VNNI
 * instructions are used. */
#ifndef QSF_KERNELS_X86_LANES_AVX2_H
#define QSF_KERNELS_X86_LANES_AVX2_H

#include <immintrin.h>

#include "kernels/x16/lanes.h"

typedef __m256i li;
typedef __m256 lf;
enum { L = 8 };

#define L_HOLD(v) __asm__("" : "+x"(v))

QK_INLINE li l_load(const void *p) { return _mm256_loadu_si256(p); }
QK_INLINE void l_store(void *p, li v) { _mm256_storeu_si256(p, v); }
QK_INLINE li l_dup(const void *p) { return _mm256_set1_epi32((int)qk_load_u32(p)); }
QK_INLINE li l_set(int32_t a) { return _mm256_set1_epi32(a); }
QK_INLINE li l_bytes(int a) { return _mm256_set1_epi8((char)a); }
QK_INLINE li l_and(li a, li b) { return _mm256_and_si256(a, b); }
QK_INLINE li l_or(li a, li b) { return _mm256_or_si256(a, b); }
QK_INLINE li l_xor(li a, li b) { return _mm256_xor_si256(a, b); }
QK_INLINE li l_add(li a, li b) { return _mm256_add_epi32(a, b); }
QK_INLINE li l_sub(li a, li b) { return _mm256_sub_epi32(a, b); }
QK_INLINE li l_mul(li a, li b) { return _mm256_mullo_epi32(a, b); }
QK_INLINE li l_shl(li v, int n) { return _mm256_slli_epi32(v, n); }
QK_INLINE li l_shr(li v, int n) { return _mm256_srli_epi32(v, n); }
QK_INLINE li l_sar(li v, int n) { return _mm256_srai_epi32(v, n); }
QK_INLINE li l_field(li v, int n, int bits) { return l_and(n ? l_shr(v, n) : v, l_bytes((1 << bits) - 1)); }
QK_INLINE li l_add8(li a, li b) { return _mm256_add_epi8(a, b); }
QK_INLINE li l_sub8(li a, li b) { return _mm256_sub_epi8(a, b); }
QK_INLINE li l_subs8(li a, li b) { return _mm256_subs_epu8(a, b); }
QK_INLINE li l_min8(li a, li b) { return _mm256_min_epu8(a, b); }
QK_INLINE li l_lookup(const void *table, li i) {
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(table)), i);
}
QK_INLINE li l_negate(li v, li marks, int bit) {
    return _mm256_sign_epi8(v, l_or(l_shl(marks, 7 - bit), l_bytes(1)));
}
/* Broadcasts from memory need no shuffle, and blends run on more units than shuffles and insertions. */
QK_INLINE li l_points4(const uint32_t *grid, const uint8_t *i) {
    li v = l_set((int32_t)grid[qk_load_u16(i)]);
    v = _mm256_blend_epi32(v, l_set((int32_t)grid[qk_load_u16(i + 4)]), 1 << 1);
    v = _mm256_blend_epi32(v, l_set((int32_t)grid[qk_load_u16(i + 8)]), 1 << 2);
    v = _mm256_blend_epi32(v, l_set((int32_t)grid[qk_load_u16(i + 12)]), 1 << 3);
    v = _mm256_blend_epi32(v, l_set((int32_t)grid[qk_load_u16(i + 16)]), 1 << 4);
    v = _mm256_blend_epi32(v, l_set((int32_t)grid[qk_load_u16(i + 20)]), 1 << 5);
    v = _mm256_blend_epi32(v, l_set((int32_t)grid[qk_load_u16(i + 24)]), 1 << 6);
    return _mm256_blend_epi32(v, l_set((int32_t)grid[qk_load_u16(i + 28)]), 1 << 7);
}
/* Of rows r, r + 1, r + 4, r + 5. */
QK_INLINE __m256 l_four_points(const uint64_t *grid, const uint8_t *i) {
    li v = _mm256_set1_epi64x((long long)grid[qk_load_u16(i)]);
    v = _mm256_blend_epi32(v, _mm256_set1_epi64x((long long)grid[qk_load_u16(i + 4)]), 3 << 2);
    v = _mm256_blend_epi32(v, _mm256_set1_epi64x((long long)grid[qk_load_u16(i + 16)]), 3 << 4);
    return _mm256_castsi256_ps(
        _mm256_blend_epi32(v, _mm256_set1_epi64x((long long)grid[qk_load_u16(i + 20)]), 3 << 6));
}
QK_INLINE void l_points8(li to[2], const uint64_t *grid, const uint8_t *i) {
    const __m256 a = l_four_points(grid, i), b = l_four_points(grid, i + 8);
    to[0] = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
    to[1] = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));
}

#ifdef L_VNNI
enum { L_BIAS = 128 };
#define L_RAW 1
QK_INLINE li l_dot(li acc, li w, li x) { return L_VNNI(dpbusd)(acc, w, x); }
QK_INLINE li l_dot_dup(li acc, li w, const void *p) { return l_dot(acc, w, l_dup(p)); }
QK_INLINE li l_biased(li w) { return _mm256_xor_si256(w, _mm256_set1_epi8((char)-128)); }
QK_INLINE li l_dot_signed(li acc, li w, li x) { return L_VNNI(dpbusd)(acc, w, x); }
QK_INLINE li l_dot16(li acc, li a, li b) { return L_VNNI(dpwssd)(acc, a, b); }
#define L_NARROW 1
QK_INLINE li l_narrow(li a, li b) { return _mm256_packs_epi32(a, b); }
QK_INLINE void l_zip(li v[2]) {
    const li a = v[0], b = v[1];
    v[0] = _mm256_unpacklo_epi32(a, b), v[1] = _mm256_unpackhi_epi32(a, b);
}
QK_INLINE li l_dup2(const void *p) { return _mm256_set1_epi64x((long long)qk_load_u64(p)); }
QK_INLINE li l_swap2(li v) { return _mm256_shuffle_epi32(v, 0x4e); }
#else
enum { L_BIAS = 0 };
#define L_PAIRS         1
typedef li lp;
#define L_HOLD_PAIRS(p) L_HOLD(p)
/* The pairs of vpmaddubsw do not saturate: 2 * 128 * 127. */
QK_INLINE lp l_pairs_of(li w, li x) { return _mm256_maddubs_epi16(w, x); }
QK_INLINE lp l_pairs(lp acc, li w, li x) { return _mm256_add_epi16(acc, l_pairs_of(w, x)); }
QK_INLINE li l_dot16(li acc, li a, li b) { return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b)); }
QK_INLINE li l_dot_pairs(li acc, lp p) { return l_dot16(acc, p, _mm256_set1_epi16(1)); }
QK_INLINE li l_dot_scaled(li acc, lp p, li scale) { return l_dot16(acc, p, scale); }
QK_INLINE li l_pair_scale(li scale) { return l_or(l_and(scale, l_set(0xffff)), l_shl(scale, 16)); }
QK_INLINE li l_dot(li acc, li w, li x) { return l_dot_pairs(acc, l_pairs_of(w, x)); }
QK_INLINE li l_biased(li w) { return w; }
/* The sign of w is moved to x. */
QK_INLINE lp l_pairs_signed(li w, li x) { return l_pairs_of(_mm256_sign_epi8(w, w), _mm256_sign_epi8(x, w)); }
QK_INLINE li l_dot_signed(li acc, li w, li x) { return l_dot_pairs(acc, l_pairs_signed(w, x)); }
#define L_MARKS         1
QK_INLINE li l_magnitudes(li w) { return _mm256_sign_epi8(w, w); }
QK_INLINE li l_marks(li w) { return _mm256_cmpgt_epi8(_mm256_setzero_si256(), w); }
#define L_WORDS         1
QK_INLINE li l_low_words(li v) {
    const __m128i upper = _mm_setr_epi8(-1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13);
    return _mm256_srai_epi16(_mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(upper)), 8);
}
QK_INLINE li l_high_words(li v) { return l_low_words(l_shr(v, 16)); }
QK_INLINE li l_mul16(li a, li b) { return _mm256_mullo_epi16(a, b); }
#endif

QK_INLINE lf l_float(li v) { return _mm256_cvtepi32_ps(v); }
QK_INLINE li l_int(lf v) { return _mm256_cvtps_epi32(v); }
QK_INLINE lf l_setf(float a) { return _mm256_set1_ps(a); }
QK_INLINE lf l_zerof(void) { return _mm256_setzero_ps(); }
QK_INLINE lf l_addf(lf a, lf b) { return _mm256_add_ps(a, b); }
QK_INLINE lf l_subf(lf a, lf b) { return _mm256_sub_ps(a, b); }
QK_INLINE lf l_mulf(lf a, lf b) { return _mm256_mul_ps(a, b); }
QK_INLINE lf l_fma(lf a, lf b, lf c) { return _mm256_fmadd_ps(a, b, c); }
QK_INLINE lf l_loadf(const float *p) { return _mm256_loadu_ps(p); }
QK_INLINE void l_storef(float *p, lf v) { _mm256_storeu_ps(p, v); }
QK_INLINE lf l_halves(const void *p) { return _mm256_cvtph_ps(_mm_loadu_si128(p)); }
QK_INLINE li l_words(const void *p) { return _mm256_cvtepu16_epi32(_mm_loadu_si128(p)); }
QK_INLINE li l_octets(const void *p) { return _mm256_cvtepu8_epi32(_mm_loadl_epi64(p)); }
QK_INLINE lf l_float_of(li v) { return _mm256_castsi256_ps(v); }
QK_INLINE void l_prefetch(const void *p) { _mm_prefetch(p, _MM_HINT_T0); }
QK_INLINE void l_prefetch_far(const void *p) { _mm_prefetch(p, _MM_HINT_T2); }

/* Rows r and r + 4, one 128-bit lane each. */
QK_INLINE __m256i l_two_rows(const uint8_t *const row[QK_GROUP], size_t at, int r) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)(row[r] + at))),
                                   _mm_loadu_si128((const void *)(row[r + 4] + at)), 1);
}

QK_INLINE void l_planes4(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    for (int v = 0; v < 2; v++, dst += 32) {
        const __m256i a = l_two_rows(row, at, 8 * v), b = l_two_rows(row, at, 8 * v + 1),
                      c = l_two_rows(row, at, 8 * v + 2), d = l_two_rows(row, at, 8 * v + 3);
        const __m256i ab0 = _mm256_unpacklo_epi32(a, b), ab1 = _mm256_unpackhi_epi32(a, b);
        const __m256i cd0 = _mm256_unpacklo_epi32(c, d), cd1 = _mm256_unpackhi_epi32(c, d);
        l_store(dst, _mm256_unpacklo_epi64(ab0, cd0));
        l_store(dst + QK_PLANE, _mm256_unpackhi_epi64(ab0, cd0));
        l_store(dst + 2 * QK_PLANE, _mm256_unpacklo_epi64(ab1, cd1));
        l_store(dst + 3 * QK_PLANE, _mm256_unpackhi_epi64(ab1, cd1));
    }
}

#endif
