/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q6_K matmul, AVX2. */
#include "kernels/x86/common_avx2.h"
#include "kernels/x86/mm.h"

enum { FMT_BYTES = sizeof(qk_q6_k), FMT_SUB = 16, FMT_OFF = 32, FMT_MIN = 0, FMT_D = 208 };

/* The sixteen scales of a row are used where they lie. */
typedef struct kscales {
    int none;
} kscales;

QK_INLINE void stage_scales(kscales *s, const qk_rows8 *g)
{
    (void)g;
    s->none = 0;
}

QK_INLINE __m256i row_scales(const kscales *s, const uint8_t *p, int r)
{
    (void)s, (void)r;
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)(p + 192)));
}

/* Scale 2j in the lower half, 2j+1 in the upper. */
QK_INLINE __m256i spread_scales(__m256i sc, int j)
{
    const __m256i near =
        j < 4 ? _mm256_permute2x128_si256(sc, sc, 0x00) : _mm256_permute2x128_si256(sc, sc, 0x11);
    const int lo = 2 * (2 * j % 8), hi = lo + 2;
    const __m128i ilo = _mm_set1_epi16((short)((lo + 1) << 8 | lo)),
                  ihi = _mm_set1_epi16((short)((hi + 1) << 8 | hi));
    return _mm256_shuffle_epi8(near, _mm256_inserti128_si256(_mm256_castsi128_si256(ilo), ihi, 1));
}

QK_INLINE int32_t scale_at(const kscales *s, const uint8_t *p, int r, int i)
{
    (void)s, (void)r;
    return (int8_t)p[192 + i];
}

QK_INLINE int16_t min_at(const kscales *s, int r, int i)
{
    (void)s, (void)r, (void)i;
    return 0;
}

QK_INLINE __m256i mins_sum(const kscales *s, const qk_col_q8k *x, size_t b)
{
    (void)s, (void)x, (void)b;
    return _mm256_setzero_si256();
}

/* Elements 32j..: nibbles of 32 bytes, and bits 2(j % 4) and up of 32 others moved to bits 4 and 5. */
QK_INLINE __m256i fmt_unpack(const uint8_t *p, int j)
{
    const int g = j % 4;
    const __m256i ql = _mm256_loadu_si256((const void *)(p + j / 4 * 64 + g % 2 * 32));
    const __m256i qh = _mm256_loadu_si256((const void *)(p + 128 + j / 4 * 32));
    const __m256i high = g < 2 ? _mm256_slli_epi16(qh, 4 - 2 * g) : _mm256_srli_epi16(qh, 2 * g - 4);
    return _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(ql, g / 2 * 4), _mm256_set1_epi8(15)),
                           _mm256_and_si256(high, _mm256_set1_epi8(48)));
}

#include "kernels/x86/mm_kquant_avx2.h"

void qk_mm_q6_k_avx2(const qk_mm *m, size_t row0, size_t row1)
{
    mm_kquant(m, row0, row1);
}
