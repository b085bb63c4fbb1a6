/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A vector of floats for SSE4.2, under the names used by ops_*.h. There is no FMA: v_fma rounds twice. There
 * are no half-float instructions: conversions work on bits, as in ref/half.c. */
#ifndef QSF_KERNELS_X86_V_SSE42_H
#define QSF_KERNELS_X86_V_SSE42_H

#include <nmmintrin.h>

#include "kernels/act.h"
#include "kernels/generic/ops.h"
#include "kernels/load.h"

#define QK_INLINE   static inline __attribute__((always_inline))
#define QK_FN(name) qk_##name##_sse42

typedef __m128 vf;
typedef __m128i vi;
enum { V = 4, V_REGISTERS = 16 };
#define V_HOLD(v) __asm__("" : "+x"(v))

QK_INLINE vi v_int(uint32_t a) { return _mm_set1_epi32((int)a); }
QK_INLINE vi v_bits(vf v) { return _mm_castps_si128(v); }
QK_INLINE vf v_floats(vi v) { return _mm_castsi128_ps(v); }

/* All bits set in the first n (0..4) lanes. */
QK_INLINE vf v_lanes(size_t n) {
    return v_floats(_mm_cmpgt_epi32(v_int((uint32_t)n), _mm_setr_epi32(0, 1, 2, 3)));
}

/* _some: the first n < V elements; memory after them is not touched, the other lanes are zero. */
QK_INLINE vf v_load(const float *p) { return _mm_loadu_ps(p); }
QK_INLINE vf v_load_some(const float *p, size_t n) {
    float all[V] = { 0 };
    for (size_t i = 0; i < n && i < V; i++) all[i] = p[i];
    return v_load(all);
}
QK_INLINE vf v_load_some_or(const float *p, size_t n, vf other) {
    return _mm_blendv_ps(other, v_load_some(p, n), v_lanes(n));
}
QK_INLINE void v_store(float *p, vf v) { _mm_storeu_ps(p, v); }
/* A non-temporal store, which bypasses the caches, to an aligned address; v_streamed after the last one. */
QK_INLINE void v_stream(float *p, vf v) { _mm_stream_ps(p, v); }
QK_INLINE void v_streamed(void) { _mm_sfence(); }
QK_INLINE void v_store_some(float *p, size_t n, vf v) {
    float all[V];
    v_store(all, v);
    for (size_t i = 0; i < n && i < V; i++) p[i] = all[i];
}
QK_INLINE vf v_keep(vf v, size_t n) { return _mm_and_ps(v, v_lanes(n)); }

QK_INLINE vf v_select(vi mask, vf yes, vf no) { return _mm_blendv_ps(no, yes, v_floats(mask)); }

/* Four halves in the low parts of four lanes. Denormals are integer multiples of 2^-24; a NaN becomes
 * quiet. */
QK_INLINE vf v_of_halves(vi h) {
    const vi a = _mm_and_si128(h, v_int(0x7fff)), shifted = _mm_slli_epi32(a, 13);
    const vi odd = _mm_cmpgt_epi32(a, v_int(0x7bff)), nan = _mm_cmpgt_epi32(a, v_int(0x7c00));
    vi bits = _mm_add_epi32(shifted, v_int(112u << 23));
    bits = _mm_add_epi32(bits, _mm_and_si128(odd, v_int(112u << 23)));
    bits = _mm_or_si128(bits, _mm_and_si128(nan, v_int(0x400000)));
    const vf small = _mm_mul_ps(_mm_cvtepi32_ps(a), _mm_set1_ps(0x1p-24f));
    const vf size = v_select(_mm_cmplt_epi32(a, v_int(0x400)), small, v_floats(bits));
    return _mm_or_ps(size, v_floats(_mm_slli_epi32(_mm_xor_si128(h, a), 16)));
}
QK_INLINE vf v_load_half(const void *p) { return v_of_halves(_mm_cvtepu16_epi32(_mm_loadl_epi64(p))); }
/* Signed bytes to two vectors of integers. */
QK_INLINE void v_widen(const void *p, vi out[2]) {
    const vi b = _mm_cvtepi8_epi16(_mm_loadl_epi64(p));
    out[0] = _mm_cvtepi16_epi32(b);
    out[1] = _mm_cvtepi16_epi32(_mm_srli_si128(b, 8));
}
/* See v_avx512.h. */
QK_INLINE void v_load_e4m3(const void *p, vf out[2]) {
    vi b[2];
    v_widen(p, b);
    for (int i = 0; i < 2; i++) {
        b[i] = _mm_slli_epi32(b[i], 7);
        const vi carry = _mm_add_epi32(_mm_and_si128(b[i], v_int(0x3f80)), v_int(0x80));
        out[i] = v_of_halves(
            _mm_or_si128(_mm_and_si128(carry, v_int(0x4000)), _mm_and_si128(b[i], v_int(0xbf80))));
    }
}
QK_INLINE void v_load_e5m2(const void *p, vf out[2]) {
    vi b[2];
    v_widen(p, b);
    for (int i = 0; i < 2; i++) out[i] = v_of_halves(_mm_and_si128(_mm_slli_epi32(b[i], 8), v_int(0xff00)));
}
/* V signed bytes. */
QK_INLINE vf v_load_bytes(const void *p) {
    int32_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return _mm_cvtepi32_ps(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(bytes)));
}
QK_INLINE vf v_load_half_some(const void *p, size_t n) {
    uint16_t h[V] = { 0 };
    memcpy(h, p, n * sizeof h[0]);
    return v_load_half(h);
}
/* See qk_f32_to_f16. */
QK_INLINE vi v_to_halves(vf v) {
    const vi bits = v_bits(v), a = _mm_and_si128(bits, v_int(0x7fffffff)),
             b = _mm_sub_epi32(a, v_int(112u << 23));
    const vi even = _mm_and_si128(_mm_srli_epi32(a, 13), v_int(1));
    const vi usual = _mm_srli_epi32(_mm_add_epi32(_mm_add_epi32(b, v_int(0xfff)), even), 13);
    const vi small = _mm_sub_epi32(v_bits(_mm_add_ps(v_floats(a), _mm_set1_ps(0.5f))), v_int(0x3f000000));
    const vi nan = _mm_or_si128(v_int(0x7e00), _mm_and_si128(_mm_srli_epi32(a, 13), v_int(0x3ff)));
    vi h = _mm_blendv_epi8(usual, small, _mm_cmplt_epi32(a, v_int(0x38800000)));
    h = _mm_blendv_epi8(h, v_int(0x7c00), _mm_cmpgt_epi32(a, v_int(0x477fefff)));
    h = _mm_blendv_epi8(h, nan, _mm_cmpgt_epi32(a, v_int(0x7f800000)));
    return _mm_or_si128(h, _mm_and_si128(_mm_srli_epi32(bits, 16), v_int(0x8000)));
}
QK_INLINE void v_store_half(void *p, vf v) {
    const vi h = v_to_halves(v);
    _mm_storel_epi64(p, _mm_packus_epi32(h, h));
}
QK_INLINE vf v_set(float a) { return _mm_set1_ps(a); }
QK_INLINE vf v_add(vf a, vf b) { return _mm_add_ps(a, b); }
QK_INLINE vf v_sub(vf a, vf b) { return _mm_sub_ps(a, b); }
QK_INLINE vf v_mul(vf a, vf b) { return _mm_mul_ps(a, b); }
QK_INLINE vf v_div(vf a, vf b) { return _mm_div_ps(a, b); }
QK_INLINE vf v_fma(vf a, vf b, vf c) { return _mm_add_ps(_mm_mul_ps(a, b), c); }
QK_INLINE vf v_fnma(vf a, vf b, vf c) { return _mm_sub_ps(c, _mm_mul_ps(a, b)); }
/* Returns the second operand if either is NaN. */
QK_INLINE vf v_max(vf a, vf b) { return _mm_max_ps(a, b); }
QK_INLINE vf v_min(vf a, vf b) { return _mm_min_ps(a, b); }
QK_INLINE float v_sum(vf v) {
    v = _mm_add_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_add_ss(v, _mm_movehdup_ps(v)));
}
QK_INLINE void v_sums(float out[8], const vf v[8]) {
    for (int i = 0; i < 8; i++) out[i] = v_sum(v[i]);
}
QK_INLINE float v_largest(vf v) {
    v = _mm_max_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_max_ss(v, _mm_movehdup_ps(v)));
}
QK_INLINE unsigned v_equal(vf a, vf b) { return (unsigned)_mm_movemask_ps(_mm_cmpeq_ps(a, b)); }

/* v, but 0 in lanes where x is below the bound. */
QK_INLINE vf v_not_below(vf v, vf x, float bound) {
    return _mm_and_ps(_mm_cmpnlt_ps(x, _mm_set1_ps(bound)), v);
}

/* Lanes of x where a is not 0, otherwise 0; a NaN is not 0. */
QK_INLINE vf v_where(vf a, vf x) { return _mm_and_ps(_mm_cmpneq_ps(a, _mm_setzero_ps()), x); }
QK_INLINE vf v_round(vf v) { return _mm_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
/* 2^n for n in [-126, 127]. */
QK_INLINE vf v_power(vi n) { return v_floats(_mm_slli_epi32(_mm_add_epi32(n, v_int(127)), 23)); }
/* v * 2^n for integer n in [-220, 190], in two steps: 2^n itself may not be representable. */
QK_INLINE vf v_ldexp(vf v, vf n) {
    const vi whole = _mm_cvtps_epi32(n), first = _mm_srai_epi32(whole, 1);
    return _mm_mul_ps(_mm_mul_ps(v, v_power(first)), v_power(_mm_sub_epi32(whole, first)));
}

/* The lowest nine bits of a lane become its sign and exponent; all other bits are 0. */
QK_INLINE vf v_exponent(vf v) { return v_floats(_mm_slli_epi32(v_bits(v), 23)); }

QK_INLINE vi v_abs_bits(const float *p) { return _mm_and_si128(v_bits(v_load(p)), v_int(0x7fffffff)); }
QK_INLINE vi v_max_bits(vi a, vi b) { return _mm_max_epi32(a, b); }
QK_INLINE uint32_t v_largest_bits(vi v) {
    v = _mm_max_epi32(v, _mm_shuffle_epi32(v, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epi32(v, _mm_shuffle_epi32(v, 0xb1)));
}
QK_INLINE int32_t v_sum_int(vi v) {
    v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(v, _mm_shuffle_epi32(v, 0xb1)));
}
/* Rounds to nearest even. */
QK_INLINE vi v_whole(vf v) { return _mm_cvtps_epi32(v); }
/* Stores V integers of 8 bits. */
QK_INLINE void v_put_bytes(int8_t *p, vi q) {
    const vi h = _mm_packs_epi32(q, q);
    const int32_t bytes = _mm_cvtsi128_si32(_mm_packs_epi16(h, h));
    memcpy(p, &bytes, sizeof bytes);
}
/* Rounds to nearest even, stores V bytes, returns them as integers. */
QK_INLINE vi v_store_bytes(int8_t *p, vf v) {
    const vi q = v_whole(v);
    v_put_bytes(p, q);
    return q;
}

/* Neighbours: (0, 0, 2, 2), (1, 1, 3, 3), (1, 0, 3, 2); a - b in even lanes and a + b in odd ones. */
QK_INLINE vf v_dup_even(vf v) { return _mm_moveldup_ps(v); }
QK_INLINE vf v_dup_odd(vf v) { return _mm_movehdup_ps(v); }
QK_INLINE vf v_swap(vf v) { return _mm_shuffle_ps(v, v, 0xb1); }
QK_INLINE vf v_addsub(vf a, vf b) { return _mm_addsub_ps(a, b); }
/* Every other lane of a, then of b. */
QK_INLINE vf v_evens(vf a, vf b) { return _mm_shuffle_ps(a, b, 0x88); }
QK_INLINE vf v_odds(vf a, vf b) { return _mm_shuffle_ps(a, b, 0xdd); }

/* Rows become columns. */
QK_INLINE void v_transpose(vf x[V]) {
    const vf a = _mm_unpacklo_ps(x[0], x[1]), b = _mm_unpackhi_ps(x[0], x[1]),
             c = _mm_unpacklo_ps(x[2], x[3]), d = _mm_unpackhi_ps(x[2], x[3]);
    x[0] = _mm_movelh_ps(a, c);
    x[1] = _mm_movehl_ps(c, a);
    x[2] = _mm_movelh_ps(b, d);
    x[3] = _mm_movehl_ps(d, b);
}

QK_INLINE vf v_load_bf16(const void *p) {
    return v_floats(_mm_unpacklo_epi16(_mm_setzero_si128(), _mm_loadl_epi64(p)));
}
QK_INLINE vf v_load_bf16_some(const void *p, size_t n) {
    uint16_t h[V] = { 0 };
    memcpy(h, p, n * sizeof h[0]);
    return v_load_bf16(h);
}
/* a < b ? yes : no */

/* A bit per lane: a > b; a >= b. */
QK_INLINE unsigned v_above(vf a, vf b) { return (unsigned)_mm_movemask_ps(_mm_cmpgt_ps(a, b)); }
QK_INLINE unsigned v_at_least(vf a, vf b) { return (unsigned)_mm_movemask_ps(_mm_cmpge_ps(a, b)); }

#endif
