/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A vector of floats for AVX-512, under the names used by ops_*.h. */
#ifndef QSF_KERNELS_X86_V_AVX512_H
#define QSF_KERNELS_X86_V_AVX512_H

#include <immintrin.h>

#include "kernels/act.h"
#include "kernels/generic/ops.h"
#include "kernels/load.h"

#define QK_FN(name) qk_##name##_avx512
#define QK_INLINE   static inline __attribute__((always_inline))

typedef __m512 vf;
typedef __m512i vi;
enum { V = 16, V_REGISTERS = 32 };
#define V_HOLD(v) __asm__("" : "+v"(v))

QK_INLINE __mmask16 v_lanes(size_t n) { return (__mmask16)((1u << n) - 1u); }

/* _some: the first n < V elements; memory after them is not touched, the other lanes are zero. */
QK_INLINE vf v_load(const float *p) { return _mm512_loadu_ps(p); }
QK_INLINE vf v_load_some(const float *p, size_t n) { return _mm512_maskz_loadu_ps(v_lanes(n), p); }
QK_INLINE vf v_load_some_or(const float *p, size_t n, vf other) {
    return _mm512_mask_loadu_ps(other, v_lanes(n), p);
}
QK_INLINE void v_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
/* A non-temporal store, which bypasses the caches, to an aligned address; v_streamed after the last one. */
QK_INLINE void v_stream(float *p, vf v) { _mm512_stream_ps(p, v); }
QK_INLINE void v_streamed(void) { _mm_sfence(); }
QK_INLINE void v_store_some(float *p, size_t n, vf v) { _mm512_mask_storeu_ps(p, v_lanes(n), v); }
QK_INLINE vf v_keep(vf v, size_t n) { return _mm512_maskz_mov_ps(v_lanes(n), v); }

QK_INLINE vf v_load_half(const void *p) { return _mm512_cvtph_ps(_mm256_loadu_si256(p)); }
/* 2 V bytes of F8 (kernels/f8.h), E4M3 divided by QK_E4M3_SCALE. Shifted, bytes with sign are the halves but
 * for bit 14: that is the carry of the magnitude plus one, as only a NaN has all bits set. */
QK_INLINE void v_load_e4m3(const void *p, vf out[2]) {
    const __m512i b = _mm512_slli_epi16(_mm512_cvtepi8_epi16(_mm256_loadu_si256(p)), 7);
    const __m512i carry = _mm512_add_epi16(_mm512_and_si512(b, _mm512_set1_epi16(0x3f80)),
                                           _mm512_set1_epi16(0x80));
    /* bit 14 set ? carry : b */
    const __m512i half = _mm512_ternarylogic_epi32(_mm512_set1_epi16(0x4000), carry, b, 0xca);
    out[0] = _mm512_cvtph_ps(_mm512_castsi512_si256(half));
    out[1] = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(half, 1));
}
QK_INLINE void v_load_e5m2(const void *p, vf out[2]) {
    const __m512i half = _mm512_slli_epi16(_mm512_cvtepu8_epi16(_mm256_loadu_si256(p)), 8);
    out[0] = _mm512_cvtph_ps(_mm512_castsi512_si256(half));
    out[1] = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(half, 1));
}
/* V signed bytes. */
QK_INLINE vf v_load_bytes(const void *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p)));
}
QK_INLINE vf v_load_half_some(const void *p, size_t n) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(v_lanes(n), p));
}
/* With an explicit mask: the plain form is a macro that warns in gcc without optimization. */
QK_INLINE __m256i v_to_half(vf v) { return _mm512_maskz_cvtps_ph(v_lanes(V), v, _MM_FROUND_TO_NEAREST_INT); }
QK_INLINE void v_store_half(void *p, vf v) { _mm256_storeu_si256(p, v_to_half(v)); }
QK_INLINE vf v_set(float a) { return _mm512_set1_ps(a); }
QK_INLINE vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
QK_INLINE vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
QK_INLINE vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
QK_INLINE vf v_div(vf a, vf b) { return _mm512_div_ps(a, b); }
QK_INLINE vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
QK_INLINE vf v_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
/* Returns the second operand if either is NaN. */
QK_INLINE vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); }
QK_INLINE vf v_min(vf a, vf b) { return _mm512_min_ps(a, b); }
QK_INLINE float v_sum(vf v) { return _mm512_reduce_add_ps(v); }
/* v_sum of each of eight, added in the same order: halves, quarters, pairs, neighbours. */
QK_INLINE void v_sums(float out[8], const vf v[8]) {
    vf half[4], quarter[2];
    for (int i = 0; i < 4; i++)
        half[i] = _mm512_add_ps(_mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0x44),
                                _mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0xee));
    for (int i = 0; i < 2; i++)
        quarter[i] = _mm512_add_ps(_mm512_shuffle_f32x4(half[2 * i], half[2 * i + 1], 0x88),
                                   _mm512_shuffle_f32x4(half[2 * i], half[2 * i + 1], 0xdd));
    const __m512d a = _mm512_castps_pd(quarter[0]), b = _mm512_castps_pd(quarter[1]);
    const vf pairs = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                                   _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
    const vf sums = _mm512_add_ps(pairs, _mm512_permute_ps(pairs, 0xb1));
    const vi order = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0, 0, 0, 0, 0);
    _mm256_storeu_ps(out, _mm512_castps512_ps256(_mm512_permutexvar_ps(order, sums)));
}
QK_INLINE float v_largest(vf v) { return _mm512_reduce_max_ps(v); }
QK_INLINE unsigned v_equal(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }

/* v, but 0 in lanes where x is below the bound. */
QK_INLINE vf v_not_below(vf v, vf x, float bound) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(bound), _CMP_NLT_UQ), v);
}

/* Lanes of x where a is not 0, otherwise 0; a NaN is not 0. */
QK_INLINE vf v_where(vf a, vf x) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_NEQ_UQ), x);
}
QK_INLINE vf v_round(vf v) { return _mm512_cvtepi32_ps(_mm512_cvtps_epi32(v)); } /* |v| < 2^31 */
/* v * 2^n for integer n in [-220, 190]. */
QK_INLINE vf v_ldexp(vf v, vf n) { return _mm512_scalef_ps(v, n); }

/* The lowest nine bits of a lane become its sign and exponent; all other bits are 0. */
QK_INLINE vf v_exponent(vf v) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(v), 23)); }

QK_INLINE vi v_abs_bits(const float *p) {
    return _mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi32(0x7fffffff));
}
QK_INLINE vi v_max_bits(vi a, vi b) { return _mm512_max_epi32(a, b); }
QK_INLINE uint32_t v_largest_bits(vi v) { return (uint32_t)_mm512_reduce_max_epi32(v); }
QK_INLINE int32_t v_sum_int(vi v) { return _mm512_reduce_add_epi32(v); }
/* Rounds to nearest even. */
QK_INLINE vi v_whole(vf v) { return _mm512_cvtps_epi32(v); }
/* Stores V integers of 8 bits. */
QK_INLINE void v_put_bytes(int8_t *p, vi q) { _mm_storeu_si128((void *)p, _mm512_cvtepi32_epi8(q)); }
/* Rounds to nearest even, stores V bytes, returns them as integers. */
QK_INLINE vi v_store_bytes(int8_t *p, vf v) {
    const vi q = v_whole(v);
    v_put_bytes(p, q);
    return q;
}

/* Neighbours: (0, 0, 2, 2 ...), (1, 1, 3, 3 ...), (1, 0, 3, 2 ...); a - b in even lanes and
 * a + b in odd ones. */
QK_INLINE vf v_dup_even(vf v) { return _mm512_moveldup_ps(v); }
QK_INLINE vf v_dup_odd(vf v) { return _mm512_movehdup_ps(v); }
QK_INLINE vf v_swap(vf v) { return _mm512_permute_ps(v, 0xb1); }
QK_INLINE vf v_addsub(vf a, vf b) { return _mm512_mask_sub_ps(_mm512_add_ps(a, b), 0x5555, a, b); }
/* Every other lane of a, then of b. */
QK_INLINE vi v_twos(void) {
    return _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}
QK_INLINE vf v_evens(vf a, vf b) { return _mm512_permutex2var_ps(a, v_twos(), b); }
QK_INLINE vf v_odds(vf a, vf b) {
    return _mm512_permutex2var_ps(a, _mm512_add_epi32(v_twos(), _mm512_set1_epi32(1)), b);
}

/* Rows become columns. */
QK_INLINE void v_transpose(vf x[V]) {
    vf a[V], b[V];
    for (int i = 0; i < V; i += 2) {
        a[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
        a[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
    }
    for (int i = 0; i < V; i += 4)
        for (int j = 0; j < 2; j++) {
            const __m512d lo = _mm512_castps_pd(a[i + j]), hi = _mm512_castps_pd(a[i + j + 2]);
            b[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(lo, hi));
            b[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(lo, hi));
        }
    /* Quarter k of b[i + j] is column 4 k + j of rows i to i + 3. */
    for (int j = 0; j < 4; j++) {
        const vf even = _mm512_shuffle_f32x4(b[j], b[4 + j], 0x88),
                 even2 = _mm512_shuffle_f32x4(b[8 + j], b[12 + j], 0x88),
                 odd = _mm512_shuffle_f32x4(b[j], b[4 + j], 0xdd),
                 odd2 = _mm512_shuffle_f32x4(b[8 + j], b[12 + j], 0xdd);
        x[j] = _mm512_shuffle_f32x4(even, even2, 0x88);
        x[4 + j] = _mm512_shuffle_f32x4(odd, odd2, 0x88);
        x[8 + j] = _mm512_shuffle_f32x4(even, even2, 0xdd);
        x[12 + j] = _mm512_shuffle_f32x4(odd, odd2, 0xdd);
    }
}

QK_INLINE vf v_load_bf16(const void *p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16));
}
QK_INLINE vf v_load_bf16_some(const void *p, size_t n) {
    uint16_t h[V] = { 0 };
    memcpy(h, p, n * sizeof h[0]);
    return v_load_bf16(h);
}
/* A bit per lane: a > b; a >= b. */
QK_INLINE unsigned v_above(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
QK_INLINE unsigned v_at_least(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }

#endif
