/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q4_0 matmul, AVX2. */
#include "kernels/x86/common_avx2.h"
#include "kernels/x86/mm.h"

enum { FMT_BYTES = sizeof(qk_q4_0), FMT_OFF = 8, FMT_MIN = 0 };

QK_INLINE __m256i fmt_unpack(const uint8_t *p)
{
    const __m128i q = _mm_loadu_si128((const void *)(p + 2));
    const __m256i z = _mm256_inserti128_si256(_mm256_castsi128_si256(q), _mm_srli_epi16(q, 4), 1);
    return _mm256_and_si256(z, _mm256_set1_epi8(15));
}

QK_INLINE __m256i fmt_dot(__m256i acc, __m256i w, __m256i x)
{
    return qk_dot(acc, w, x);
}

#include "kernels/x86/mm_block_avx2.h"

void qk_mm_q4_0_avx2(const qk_mm *m, size_t row0, size_t row1)
{
    mm_block(m, row0, row1);
}
