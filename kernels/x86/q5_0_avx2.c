/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q5_0 matmul, AVX2. */
#include "kernels/x86/common_avx2.h"
#include "kernels/x86/mm.h"

enum { FMT_BYTES = sizeof(qk_q5_0), FMT_OFF = 16, FMT_MIN = 0 };

QK_INLINE __m256i fmt_unpack(const uint8_t *p)
{
    const __m128i q = _mm_loadu_si128((const void *)(p + 6));
    const __m256i z = _mm256_inserti128_si256(_mm256_castsi128_si256(q), _mm_srli_epi16(q, 4), 1);
    /* Byte i of the shuffle holds the byte with bit i; the mask keeps that bit, the comparison spreads it. */
    const __m256i byte = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    const __m256i high = _mm256_shuffle_epi8(_mm256_set1_epi32((int)qk_load_u32(p + 2)), byte);
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(high, bit), bit);
    return _mm256_or_si256(_mm256_and_si256(z, _mm256_set1_epi8(15)), _mm256_and_si256(set, _mm256_set1_epi8(16)));
}

QK_INLINE __m256i fmt_dot(__m256i acc, __m256i w, __m256i x)
{
    return qk_dot(acc, w, x);
}

#include "kernels/x86/mm_block_avx2.h"

void qk_mm_q5_0_avx2(const qk_mm *m, size_t row0, size_t row1)
{
    mm_block(m, row0, row1);
}
