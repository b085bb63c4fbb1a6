/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pieces shared by the AVX-512 kernels: sums across 16 rows at once and the 16x16 transpose. Both
 * work on integers, so their order does not matter to the result. */
#ifndef QSF_KERNELS_X86_COMMON_AVX512_H
#define QSF_KERNELS_X86_COMMON_AVX512_H

#include <immintrin.h>

#include "kernels/act.h"
#include "kernels/load.h"

#define QK_INLINE static inline __attribute__((always_inline))

enum { QK_GROUP = 16 }; /* rows worked on together: one per lane */

/* Rows of one group. A group with fewer than 16 rows repeats its last one and stores what exists. */
typedef struct qk_rows16 {
    const uint8_t *p[QK_GROUP];
    const uint8_t *next; /* first byte of the group after it: what to prefetch */
    __mmask16 live;
} qk_rows16;

QK_INLINE qk_rows16 qk_rows16_at(const qk_mm *m, size_t r, size_t row1)
{
    const size_t n = row1 - r < QK_GROUP ? row1 - r : QK_GROUP;
    qk_rows16 g;
    for (size_t i = 0; i < QK_GROUP; i++)
        g.p[i] = qk_mm_row(m, r + (i < n ? i : n - 1));
    g.next = qk_mm_row(m, r) + QK_GROUP * m->row_bytes;
    g.live = (__mmask16)((1u << n) - 1u);
    return g;
}

/* Per 128-bit lane: the sums of the four elements of a, b, c and d. */
QK_INLINE __m512i qk_sum4_epi32(__m512i a, __m512i b, __m512i c, __m512i d)
{
    const __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    const __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    return _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
}

/* t[i] = qk_sum4_epi32 of rows 4i..4i+3. *lo: per row the sum of the lower half, *hi: of the upper. */
QK_INLINE void qk_sum16_halves(const __m512i t[4], __m512i *lo, __m512i *hi)
{
    const __m512i a =
        _mm512_add_epi32(_mm512_shuffle_i32x4(t[0], t[1], 0x88), _mm512_shuffle_i32x4(t[0], t[1], 0xdd));
    const __m512i b =
        _mm512_add_epi32(_mm512_shuffle_i32x4(t[2], t[3], 0x88), _mm512_shuffle_i32x4(t[2], t[3], 0xdd));
    *lo = _mm512_shuffle_i32x4(a, b, 0x88);
    *hi = _mm512_shuffle_i32x4(a, b, 0xdd);
}

/* z[r] = dword c of row r  ->  z[c] = dword c of every row. */
QK_INLINE void qk_transpose16(__m512i z[QK_GROUP])
{
    __m512i t[QK_GROUP], u[QK_GROUP];
    for (int i = 0; i < QK_GROUP; i += 2) {
        t[i] = _mm512_unpacklo_epi32(z[i], z[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(z[i], z[i + 1]);
    }
    for (int i = 0; i < QK_GROUP; i += 4) {
        u[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        u[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        u[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        u[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int j = 0; j < 4; j++) {
        const __m512i ab0 = _mm512_shuffle_i32x4(u[j], u[j + 4], 0x88);
        const __m512i ab1 = _mm512_shuffle_i32x4(u[j], u[j + 4], 0xdd);
        const __m512i cd0 = _mm512_shuffle_i32x4(u[j + 8], u[j + 12], 0x88);
        const __m512i cd1 = _mm512_shuffle_i32x4(u[j + 8], u[j + 12], 0xdd);
        z[j] = _mm512_shuffle_i32x4(ab0, cd0, 0x88);
        z[j + 4] = _mm512_shuffle_i32x4(ab1, cd1, 0x88);
        z[j + 8] = _mm512_shuffle_i32x4(ab0, cd0, 0xdd);
        z[j + 12] = _mm512_shuffle_i32x4(ab1, cd1, 0xdd);
    }
}

/* 16 packed bytes in the lower two lanes, 16 others in the upper two: two blocks of nibbles. */
QK_INLINE __m512i qk_load_16_16(const uint8_t *lo, const uint8_t *hi)
{
    const __m512i z = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)lo));
    return _mm512_mask_broadcast_i32x4(z, 0xff00, _mm_loadu_si128((const __m128i *)(const void *)hi));
}

/* The nibbles of two blocks in element order: each block's low nibbles, then its high ones. */
QK_INLINE __m512i qk_nibbles_2(const uint8_t *a, const uint8_t *b)
{
    const __m512i shift = _mm512_set_epi64(4, 4, 0, 0, 4, 4, 0, 0);
    return _mm512_and_si512(_mm512_srlv_epi64(qk_load_16_16(a, b), shift), _mm512_set1_epi8(15));
}

/* z + 16 where bit i of the four bytes at a, and of those at b, is set. */
QK_INLINE __m512i qk_add_fifth_bits(__m512i z, const uint8_t *a, const uint8_t *b)
{
    const uint64_t high = qk_load_u32(a) | (uint64_t)qk_load_u32(b) << 32;
    return _mm512_mask_add_epi8(z, (__mmask64)high, z, _mm512_set1_epi8(16));
}

/* 32 bytes in the lower half, 32 others in the upper. */
QK_INLINE __m512i qk_load_32_32(const uint8_t *lo, const uint8_t *hi)
{
    const __m512i z = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)lo));
    return _mm512_mask_broadcast_i64x4(z, 0xf0, _mm256_loadu_si256((const __m256i *)(const void *)hi));
}

QK_INLINE void qk_prefetch(const uint8_t *p)
{
    _mm_prefetch((const char *)p, _MM_HINT_T1);
}

#endif
