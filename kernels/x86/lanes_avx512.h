/* SPDX-License-Identifier: GPL-3.0-or-later */
/* AVX-512 lanes (kernels/x16/lanes.h). With L_VNNI, which lanes_avx512vnni.h defines, VNNI instructions are
 * used. */
#ifndef QSF_KERNELS_X86_LANES_AVX512_H
#define QSF_KERNELS_X86_LANES_AVX512_H

#include <immintrin.h>

#include "kernels/x16/lanes.h"

typedef __m512i li;
typedef __m512 lf;
enum { L = 16 };

#define L_HOLD(v) __asm__("" : "+v"(v))

QK_INLINE li l_load(const void *p) { return _mm512_loadu_si512(p); }
QK_INLINE void l_store(void *p, li v) { _mm512_storeu_si512(p, v); }
QK_INLINE li l_dup(const void *p) { return _mm512_set1_epi32((int)qk_load_u32(p)); }
QK_INLINE li l_set(int32_t a) { return _mm512_set1_epi32(a); }
QK_INLINE li l_bytes(int a) { return _mm512_set1_epi8((char)a); }
QK_INLINE li l_and(li a, li b) { return _mm512_and_si512(a, b); }
QK_INLINE li l_or(li a, li b) { return _mm512_or_si512(a, b); }
QK_INLINE li l_xor(li a, li b) { return _mm512_xor_si512(a, b); }
QK_INLINE li l_add(li a, li b) { return _mm512_add_epi32(a, b); }
QK_INLINE li l_sub(li a, li b) { return _mm512_sub_epi32(a, b); }
QK_INLINE li l_mul(li a, li b) { return _mm512_mullo_epi32(a, b); }
QK_INLINE li l_shl(li v, int n) { return _mm512_slli_epi32(v, (unsigned)n); }
QK_INLINE li l_shr(li v, int n) { return _mm512_srli_epi32(v, (unsigned)n); }
QK_INLINE li l_sar(li v, int n) { return _mm512_srai_epi32(v, (unsigned)n); }
QK_INLINE li l_field(li v, int n, int bits) { return l_and(n ? l_shr(v, n) : v, l_bytes((1 << bits) - 1)); }
QK_INLINE li l_add8(li a, li b) { return _mm512_add_epi8(a, b); }
QK_INLINE li l_sub8(li a, li b) { return _mm512_sub_epi8(a, b); }
QK_INLINE li l_subs8(li a, li b) { return _mm512_subs_epu8(a, b); }
QK_INLINE li l_min8(li a, li b) { return _mm512_min_epu8(a, b); }
QK_INLINE li l_lookup(const void *table, li i) {
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128(table)), i);
}

#ifdef L_VNNI
enum { L_BIAS = 128 };
#define L_RAW 1
QK_INLINE li l_dot(li acc, li w, li x) { return _mm512_dpbusd_epi32(acc, w, x); }
/* The compiler would load and broadcast with an instruction of its own. */
QK_INLINE li l_dot_dup(li acc, li w, const void *p) {
    __asm__("vpdpbusd %1%{1to16%}, %2, %0" : "+v"(acc) : "m"(*(const int32_t(*)[1])p), "v"(w));
    return acc;
}
QK_INLINE li l_biased(li w) { return _mm512_xor_si512(w, _mm512_set1_epi8((char)-128)); }
QK_INLINE li l_dot_signed(li acc, li w, li x) { return _mm512_dpbusd_epi32(acc, w, x); }
QK_INLINE li l_dot16(li acc, li a, li b) { return _mm512_dpwssd_epi32(acc, a, b); }
#define L_NARROW 1
QK_INLINE li l_narrow(li a, li b) { return _mm512_packs_epi32(a, b); }
QK_INLINE void l_zip(li v[2]) {
    const li a = v[0], b = v[1];
    v[0] = _mm512_unpacklo_epi32(a, b), v[1] = _mm512_unpackhi_epi32(a, b);
}
QK_INLINE li l_dup2(const void *p) { return _mm512_set1_epi64((long long)qk_load_u64(p)); }
QK_INLINE li l_swap2(li v) { return _mm512_shuffle_epi32(v, (_MM_PERM_ENUM)0x4e); }
#else
enum { L_BIAS = 0 };
#define L_PAIRS         1
typedef li lp;
#define L_HOLD_PAIRS(p) L_HOLD(p)
/* The pairs of vpmaddubsw do not saturate: 2 * 128 * 127. */
QK_INLINE lp l_pairs_of(li w, li x) { return _mm512_maddubs_epi16(w, x); }
QK_INLINE lp l_pairs(lp acc, li w, li x) { return _mm512_add_epi16(acc, l_pairs_of(w, x)); }
QK_INLINE li l_dot16(li acc, li a, li b) { return _mm512_add_epi32(acc, _mm512_madd_epi16(a, b)); }
QK_INLINE li l_dot_pairs(li acc, lp p) { return l_dot16(acc, p, _mm512_set1_epi16(1)); }
QK_INLINE li l_dot_scaled(li acc, lp p, li scale) { return l_dot16(acc, p, scale); }
QK_INLINE li l_pair_scale(li scale) { return l_or(l_and(scale, l_set(0xffff)), l_shl(scale, 16)); }
QK_INLINE li l_dot(li acc, li w, li x) { return l_dot_pairs(acc, l_pairs_of(w, x)); }
QK_INLINE li l_biased(li w) { return w; }
/* The sign of w is moved to x. */
QK_INLINE lp l_pairs_signed(li w, li x) {
    return l_pairs_of(_mm512_abs_epi8(w),
                      _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x));
}
QK_INLINE li l_dot_signed(li acc, li w, li x) { return l_dot_pairs(acc, l_pairs_signed(w, x)); }
#endif

QK_INLINE lf l_float(li v) { return _mm512_cvtepi32_ps(v); }
QK_INLINE li l_int(lf v) { return _mm512_cvtps_epi32(v); }
QK_INLINE lf l_setf(float a) { return _mm512_set1_ps(a); }
QK_INLINE lf l_zerof(void) { return _mm512_setzero_ps(); }
QK_INLINE lf l_addf(lf a, lf b) { return _mm512_add_ps(a, b); }
QK_INLINE lf l_subf(lf a, lf b) { return _mm512_sub_ps(a, b); }
QK_INLINE lf l_mulf(lf a, lf b) { return _mm512_mul_ps(a, b); }
QK_INLINE lf l_fma(lf a, lf b, lf c) { return _mm512_fmadd_ps(a, b, c); }
QK_INLINE lf l_loadf(const float *p) { return _mm512_loadu_ps(p); }
QK_INLINE void l_storef(float *p, lf v) { _mm512_storeu_ps(p, v); }
QK_INLINE lf l_halves(const void *p) { return _mm512_cvtph_ps(_mm256_loadu_si256(p)); }
QK_INLINE li l_words(const void *p) { return _mm512_cvtepu16_epi32(_mm256_loadu_si256(p)); }
QK_INLINE li l_octets(const void *p) { return _mm512_cvtepu8_epi32(_mm_loadu_si128(p)); }
QK_INLINE lf l_float_of(li v) { return _mm512_castsi512_ps(v); }
QK_INLINE li l_negate(li v, li marks, int bit) {
    return _mm512_mask_sub_epi8(v, _mm512_test_epi8_mask(marks, l_bytes(1 << bit)), l_set(0), v);
}
QK_INLINE li l_points4(const uint32_t *grid, const uint8_t *i) {
    li v = l_set((int32_t)grid[qk_load_u16(i)]);
    QK_UNROLL for (int r = 1; r < L; r++)
        v = _mm512_mask_set1_epi32(v, (__mmask16)(1 << r), (int32_t)grid[qk_load_u16(i + 4 * r)]);
    return v;
}
/* Of eight rows. */
QK_INLINE li l_eight_points(const uint64_t *grid, const uint8_t *i) {
    li v = _mm512_set1_epi64((long long)grid[qk_load_u16(i)]);
    QK_UNROLL for (int r = 1; r < 8; r++)
        v = _mm512_mask_broadcastq_epi64(v, (__mmask8)(1 << r),
                                         _mm_loadl_epi64((const void *)&grid[qk_load_u16(i + 4 * r)]));
    return v;
}
QK_INLINE void l_points8(li to[2], const uint64_t *grid, const uint8_t *i) {
    const li a = l_eight_points(grid, i), b = l_eight_points(grid, i + 32);
    const li even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    to[0] = _mm512_permutex2var_epi32(a, even, b);
    to[1] = _mm512_permutex2var_epi32(a, l_or(even, l_set(1)), b);
}
QK_INLINE li l_mirror(li v, li marks, int bit, int twice) {
    return _mm512_mask_sub_epi8(v, _mm512_test_epi8_mask(marks, l_bytes(1 << bit)), l_bytes(twice), v);
}
QK_INLINE void l_prefetch(const void *p) { _mm_prefetch(p, _MM_HINT_T0); }
QK_INLINE void l_prefetch_far(const void *p) { _mm_prefetch(p, _MM_HINT_T2); }

/* 16 bytes of rows r, r + 4, r + 8 and r + 12, one 128-bit lane each. */
QK_INLINE __m512i l_four_rows(const uint8_t *const row[QK_GROUP], size_t at, int r) {
    __m512i z = _mm512_castsi128_si512(_mm_loadu_si128((const void *)(row[r] + at)));
    z = _mm512_inserti32x4(z, _mm_loadu_si128((const void *)(row[r + 4] + at)), 1);
    z = _mm512_inserti32x4(z, _mm_loadu_si128((const void *)(row[r + 8] + at)), 2);
    return _mm512_inserti32x4(z, _mm_loadu_si128((const void *)(row[r + 12] + at)), 3);
}

QK_INLINE void l_planes4(uint8_t *dst, const uint8_t *const row[QK_GROUP], size_t at) {
    const __m512i a = l_four_rows(row, at, 0), b = l_four_rows(row, at, 1), c = l_four_rows(row, at, 2),
                  d = l_four_rows(row, at, 3);
    const __m512i ab0 = _mm512_unpacklo_epi32(a, b), ab1 = _mm512_unpackhi_epi32(a, b);
    const __m512i cd0 = _mm512_unpacklo_epi32(c, d), cd1 = _mm512_unpackhi_epi32(c, d);
    l_store(dst, _mm512_unpacklo_epi64(ab0, cd0));
    l_store(dst + QK_PLANE, _mm512_unpackhi_epi64(ab0, cd0));
    l_store(dst + 2 * QK_PLANE, _mm512_unpacklo_epi64(ab1, cd1));
    l_store(dst + 3 * QK_PLANE, _mm512_unpackhi_epi64(ab1, cd1));
}

#endif
