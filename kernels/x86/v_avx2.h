/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A vector of floats for AVX2, under the names used by ops_*.h. */
#ifndef QSF_KERNELS_X86_V_AVX2_H
#define QSF_KERNELS_X86_V_AVX2_H

#include <immintrin.h>

#include "kernels/act.h"
#include "kernels/generic/ops.h"
#include "kernels/load.h"

#define QK_INLINE   static inline __attribute__((always_inline))
#define QK_FN(name) qk_##name##_avx2

typedef __m256 vf;
typedef __m256i vi;
enum { V = 8, V_REGISTERS = 16 };
#define V_HOLD(v) __asm__("" : "+x"(v))

/* All bits set in the first n (0..8) of 8 lanes. */
QK_INLINE __m256i qk_lanes(size_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* The first n (0..8) floats, then zeros. */
QK_INLINE __m256 qk_load_some_ps(const float *p, size_t n) { return _mm256_maskload_ps(p, qk_lanes(n)); }

QK_INLINE void qk_store_some_ps(float *p, size_t n, __m256 v) { _mm256_maskstore_ps(p, qk_lanes(n), v); }

QK_INLINE float qk_sum_ps(__m256 v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

QK_INLINE float qk_max_ps(__m256 v) {
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

/* _some: the first n < V elements; memory after them is not touched, the other lanes are zero. */
QK_INLINE vf v_load(const float *p) { return _mm256_loadu_ps(p); }
QK_INLINE vf v_load_some(const float *p, size_t n) { return qk_load_some_ps(p, n); }
QK_INLINE vf v_load_some_or(const float *p, size_t n, vf other) {
    return _mm256_blendv_ps(other, qk_load_some_ps(p, n), _mm256_castsi256_ps(qk_lanes(n)));
}
QK_INLINE void v_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
/* A non-temporal store, which bypasses the caches, to an aligned address; v_streamed after the last one. */
QK_INLINE void v_stream(float *p, vf v) { _mm256_stream_ps(p, v); }
QK_INLINE void v_streamed(void) { _mm_sfence(); }
QK_INLINE void v_store_some(float *p, size_t n, vf v) { qk_store_some_ps(p, n, v); }
QK_INLINE vf v_keep(vf v, size_t n) { return _mm256_and_ps(v, _mm256_castsi256_ps(qk_lanes(n))); }

QK_INLINE vf v_load_half(const void *p) { return _mm256_cvtph_ps(_mm_loadu_si128(p)); }
/* See v_avx512.h. */
QK_INLINE void v_load_e4m3(const void *p, vf out[2]) {
    const __m256i b = _mm256_slli_epi16(_mm256_cvtepi8_epi16(_mm_loadu_si128(p)), 7);
    const __m256i carry = _mm256_add_epi16(_mm256_and_si256(b, _mm256_set1_epi16(0x3f80)),
                                           _mm256_set1_epi16(0x80));
    const __m256i bit = _mm256_set1_epi16(0x4000);
    const __m256i half = _mm256_or_si256(_mm256_and_si256(carry, bit), _mm256_andnot_si256(bit, b));
    out[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(half));
    out[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1));
}
QK_INLINE void v_load_e5m2(const void *p, vf out[2]) {
    const __m256i half = _mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128(p)), 8);
    out[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(half));
    out[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1));
}
/* V signed bytes. */
QK_INLINE vf v_load_bytes(const void *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p)));
}
QK_INLINE vf v_load_half_some(const void *p, size_t n) {
    _Alignas(16) uint16_t h[V] = { 0 };
    memcpy(h, p, n * sizeof h[0]);
    return v_load_half(h);
}
QK_INLINE void v_store_half(void *p, vf v) {
    _mm_storeu_si128(p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
QK_INLINE vf v_set(float a) { return _mm256_set1_ps(a); }
QK_INLINE vf v_add(vf a, vf b) { return _mm256_add_ps(a, b); }
QK_INLINE vf v_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
QK_INLINE vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
QK_INLINE vf v_div(vf a, vf b) { return _mm256_div_ps(a, b); }
QK_INLINE vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
QK_INLINE vf v_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
/* Returns the second operand if either is NaN. */
QK_INLINE vf v_max(vf a, vf b) { return _mm256_max_ps(a, b); }
QK_INLINE vf v_min(vf a, vf b) { return _mm256_min_ps(a, b); }
QK_INLINE float v_sum(vf v) { return qk_sum_ps(v); }
/* v_sum of each of eight, added in the same order: halves, pairs, neighbours. */
QK_INLINE void v_sums(float out[8], const vf v[8]) {
    __m256d half[4];
    vf pairs[2];
    for (int i = 0; i < 4; i++)
        half[i] = _mm256_castps_pd(_mm256_add_ps(_mm256_permute2f128_ps(v[i], v[i + 4], 0x20),
                                                 _mm256_permute2f128_ps(v[i], v[i + 4], 0x31)));
    for (int i = 0; i < 2; i++)
        pairs[i] = _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(half[2 * i], half[2 * i + 1])),
                                 _mm256_castpd_ps(_mm256_unpackhi_pd(half[2 * i], half[2 * i + 1])));
    _mm256_storeu_ps(out, _mm256_add_ps(_mm256_shuffle_ps(pairs[0], pairs[1], 0x88),
                                        _mm256_shuffle_ps(pairs[0], pairs[1], 0xdd)));
}
QK_INLINE float v_largest(vf v) { return qk_max_ps(v); }
QK_INLINE unsigned v_equal(vf a, vf b) {
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ));
}

/* v, but 0 in lanes where x is below the bound. */
QK_INLINE vf v_not_below(vf v, vf x, float bound) {
    return _mm256_and_ps(_mm256_cmp_ps(x, _mm256_set1_ps(bound), _CMP_NLT_UQ), v);
}

/* Lanes of x where a is not 0, otherwise 0; a NaN is not 0. */
QK_INLINE vf v_where(vf a, vf x) {
    return _mm256_and_ps(_mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_NEQ_UQ), x);
}
QK_INLINE vf v_round(vf v) { return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
/* v * 2^n for integer n in [-220, 190], in two steps: 2^n itself may not be representable. */
QK_INLINE vf v_ldexp(vf v, vf n) {
    const vi whole = _mm256_cvtps_epi32(n), first = _mm256_srai_epi32(whole, 1),
             bias = _mm256_set1_epi32(127);
    const vi second = _mm256_sub_epi32(whole, first);
    v = _mm256_mul_ps(v, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(first, bias), 23)));
    return _mm256_mul_ps(v, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(second, bias), 23)));
}

/* The lowest nine bits of a lane become its sign and exponent; all other bits are 0. */
QK_INLINE vf v_exponent(vf v) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(v), 23)); }

QK_INLINE vi v_abs_bits(const float *p) {
    return _mm256_and_si256(_mm256_loadu_si256((const void *)p), _mm256_set1_epi32(0x7fffffff));
}
QK_INLINE vi v_max_bits(vi a, vi b) { return _mm256_max_epi32(a, b); }
QK_INLINE uint32_t v_largest_bits(vi v) {
    __m128i s = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_max_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}
QK_INLINE int32_t v_sum_int(vi v) {
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}
/* Rounds to nearest even. */
QK_INLINE vi v_whole(vf v) { return _mm256_cvtps_epi32(v); }
/* Stores V integers of 8 bits. */
QK_INLINE void v_put_bytes(int8_t *p, vi q) {
    const __m128i h = _mm_packs_epi32(_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
    _mm_storel_epi64((void *)p, _mm_packs_epi16(h, h));
}
/* Rounds to nearest even, stores V bytes, returns them as integers. */
QK_INLINE vi v_store_bytes(int8_t *p, vf v) {
    const vi q = v_whole(v);
    v_put_bytes(p, q);
    return q;
}

/* Neighbours: (0, 0, 2, 2 ...), (1, 1, 3, 3 ...), (1, 0, 3, 2 ...); a - b in even lanes and
 * a + b in odd ones. */
QK_INLINE vf v_dup_even(vf v) { return _mm256_moveldup_ps(v); }
QK_INLINE vf v_dup_odd(vf v) { return _mm256_movehdup_ps(v); }
QK_INLINE vf v_swap(vf v) { return _mm256_permute_ps(v, 0xb1); }
QK_INLINE vf v_addsub(vf a, vf b) { return _mm256_addsub_ps(a, b); }
/* Every other lane of a, then of b. */
QK_INLINE vf v_halves_of(__m256 v) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8));
}
QK_INLINE vf v_evens(vf a, vf b) { return v_halves_of(_mm256_shuffle_ps(a, b, 0x88)); }
QK_INLINE vf v_odds(vf a, vf b) { return v_halves_of(_mm256_shuffle_ps(a, b, 0xdd)); }

/* See v_avx512.h. */
QK_INLINE void v_transpose(vf x[V]) {
    vf a[V], b[V];
    for (int i = 0; i < V; i += 2) {
        a[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
        a[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
    }
    for (int i = 0; i < V; i += 4)
        for (int j = 0; j < 2; j++) {
            const __m256d lo = _mm256_castps_pd(a[i + j]), hi = _mm256_castps_pd(a[i + j + 2]);
            b[i + 2 * j] = _mm256_castpd_ps(_mm256_unpacklo_pd(lo, hi));
            b[i + 2 * j + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(lo, hi));
        }
    for (int j = 0; j < 4; j++) {
        x[j] = _mm256_permute2f128_ps(b[j], b[4 + j], 0x20);
        x[4 + j] = _mm256_permute2f128_ps(b[j], b[4 + j], 0x31);
    }
}

QK_INLINE vf v_load_bf16(const void *p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16));
}
QK_INLINE vf v_load_bf16_some(const void *p, size_t n) {
    uint16_t h[V] = { 0 };
    memcpy(h, p, n * sizeof h[0]);
    return v_load_bf16(h);
}
/* a < b ? yes : no */

/* A bit per lane: a > b; a >= b. */
QK_INLINE unsigned v_above(vf a, vf b) {
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ));
}
QK_INLINE unsigned v_at_least(vf a, vf b) {
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GE_OQ));
}

#endif
