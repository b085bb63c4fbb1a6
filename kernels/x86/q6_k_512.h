/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q6_K at AVX-512: how 64 elements of a super-block become bytes. Included after one of the dot
 * headers. */
#ifndef QSF_KERNELS_X86_Q6_K_512_H
#define QSF_KERNELS_X86_Q6_K_512_H

enum { FMT_BYTES = sizeof(qk_q6_k), FMT_SUB = 16, FMT_OFF = 32, FMT_MIN = 0, FMT_D = 208 };

/* The sixteen scales of a row are used where they lie. */
typedef struct kscales {
    int none;
} kscales;

QK_INLINE void stage_scales(kscales *s, const qk_rows16 *g)
{
    (void)g;
    s->none = 0;
}

QK_INLINE __m512i row_scales(const kscales *s, const uint8_t *p, int r)
{
    (void)s, (void)r;
    return _mm512_castsi256_si512(_mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)(p + 192))));
}

QK_INLINE int32_t scale_at(const kscales *s, const uint8_t *p, int r, int i)
{
    (void)s, (void)r;
    return (int8_t)p[192 + i];
}

/* Elements 64j..: the low or high nibbles of 64 bytes, and two bits of each of 32 bytes. */
QK_INLINE __m512i fmt_unpack(const uint8_t *p, int j)
{
    const uint8_t *half = p + 64 * (j / 2);
    const __m512i low =
        _mm512_srlv_epi16(_mm512_loadu_si512((const void *)half), _mm512_set1_epi16(j % 2 ? 4 : 0));
    const __m512i high = _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)(p + 128 + 32 * (j / 2))));
    /* Rotate the pair of bits to bits 4 and 5: left by 4 and 2, or by 0 and right by 2. */
    const __m512i turn =
        j % 2 ? _mm512_set_epi64(62, 62, 62, 62, 0, 0, 0, 0) : _mm512_set_epi64(2, 2, 2, 2, 4, 4, 4, 4);
    return _mm512_or_si512(_mm512_and_si512(low, _mm512_set1_epi8(15)),
                           _mm512_and_si512(_mm512_rolv_epi64(high, turn), _mm512_set1_epi8(48)));
}

QK_INLINE int16_t min_at(const kscales *s, int r, int i)
{
    (void)s, (void)r, (void)i;
    return 0;
}

QK_INLINE __m512i mins_sum(const kscales *s, const qk_col_q8k *x, size_t b)
{
    (void)s, (void)x, (void)b;
    return _mm512_setzero_si512();
}

#include "kernels/x86/mm_kquant_512.h"

#endif
