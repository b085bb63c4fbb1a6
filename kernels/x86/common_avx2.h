/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pieces shared by the AVX2 kernels: partial loads, sums in a fixed order, integer dot products. */
#ifndef QSF_KERNELS_X86_COMMON_AVX2_H
#define QSF_KERNELS_X86_COMMON_AVX2_H

#include <immintrin.h>

#include "kernels/act.h"
#include "kernels/load.h"

#define QK_INLINE static inline __attribute__((always_inline))

enum { QK_GROUP = 8 }; /* rows worked on together: one per lane */

/* Rows of one group. A group with fewer than 8 rows repeats its last one and stores what exists. */
typedef struct qk_rows8 {
    const uint8_t *p[QK_GROUP];
    const uint8_t *next; /* first byte of the group after it: what to prefetch */
    size_t n;
} qk_rows8;

QK_INLINE qk_rows8 qk_rows8_at(const qk_mm *m, size_t r, size_t row1)
{
    qk_rows8 g;
    g.n = row1 - r < QK_GROUP ? row1 - r : QK_GROUP;
    for (size_t i = 0; i < QK_GROUP; i++)
        g.p[i] = qk_mm_row(m, r + (i < g.n ? i : g.n - 1));
    g.next = qk_mm_row(m, r) + QK_GROUP * m->row_bytes;
    return g;
}

QK_INLINE void qk_prefetch(const uint8_t *p)
{
    _mm_prefetch((const char *)p, _MM_HINT_T1);
}

/* All bits set in the first n (0..8) of 8 lanes. */
QK_INLINE __m256i qk_lanes(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* The first n (0..8) floats, then zeros. */
QK_INLINE __m256 qk_load_some_ps(const float *p, size_t n)
{
    return _mm256_maskload_ps(p, qk_lanes(n));
}

QK_INLINE void qk_store_some_ps(float *p, size_t n, __m256 v)
{
    _mm256_maskstore_ps(p, qk_lanes(n), v);
}

QK_INLINE float qk_sum_ps(__m256 v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

QK_INLINE float qk_max_ps(__m256 v)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

/* acc + sums of four products per 32-bit lane; w unsigned up to 127, x signed: the 16-bit pairs do
 * not saturate. */
QK_INLINE __m256i qk_dot(__m256i acc, __m256i w, __m256i x)
{
    return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1)));
}

/* The same for signed weights: the sign moves to x, which is never -128. */
QK_INLINE __m256i qk_dot_signed(__m256i acc, __m256i w, __m256i x)
{
    return qk_dot(acc, _mm256_sign_epi8(w, w), _mm256_sign_epi8(x, w));
}

/* acc + scale * (sum of four products) per 32-bit lane; the 16-bit scale stands in both halves of
 * the lane. */
QK_INLINE __m256i qk_dot_scaled(__m256i acc, __m256i w, __m256i x, __m256i scale)
{
    return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), scale));
}

/* 16 packed bytes: low nibbles, then high ones. */
QK_INLINE __m256i qk_nibbles(const uint8_t *p)
{
    const __m128i q = _mm_loadu_si128((const void *)p);
    const __m256i z = _mm256_inserti128_si256(_mm256_castsi128_si256(q), _mm_srli_epi16(q, 4), 1);
    return _mm256_and_si256(z, _mm256_set1_epi8(15));
}

/* Byte i is 16 where bit i of the four bytes at p is set: the shuffle puts the byte with bit i at
 * byte i, the mask keeps the bit, the comparison spreads it. */
QK_INLINE __m256i qk_fifth_bits(const uint8_t *p)
{
    const __m256i byte = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32((int)qk_load_u32(p)), byte);
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
    return _mm256_and_si256(set, _mm256_set1_epi8(16));
}

/* acc + products of 16-bit pairs. */
QK_INLINE __m256i qk_dot16(__m256i acc, __m256i a, __m256i b)
{
    return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b));
}

/* Per 128-bit lane: the sums of the four elements of a, b, c and d. */
QK_INLINE __m256i qk_sum4_epi32(__m256i a, __m256i b, __m256i c, __m256i d)
{
    return _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
}

/* Lane r: the sum of the eight lanes of z[r]. */
QK_INLINE __m256i qk_sum8(const __m256i z[QK_GROUP])
{
    const __m256i a = qk_sum4_epi32(z[0], z[1], z[2], z[3]), b = qk_sum4_epi32(z[4], z[5], z[6], z[7]);
    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

/* z[r] = dword c of row r  ->  z[c] = dword c of every row. */
QK_INLINE void qk_transpose8(__m256i z[QK_GROUP])
{
    __m256i t[QK_GROUP], u[QK_GROUP];
    for (int i = 0; i < QK_GROUP; i += 2) {
        t[i] = _mm256_unpacklo_epi32(z[i], z[i + 1]);
        t[i + 1] = _mm256_unpackhi_epi32(z[i], z[i + 1]);
    }
    for (int i = 0; i < QK_GROUP; i += 4) {
        u[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
        u[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
        u[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
        u[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int j = 0; j < 4; j++) {
        z[j] = _mm256_permute2x128_si256(u[j], u[j + 4], 0x20);
        z[j + 4] = _mm256_permute2x128_si256(u[j], u[j + 4], 0x31);
    }
}

#endif
