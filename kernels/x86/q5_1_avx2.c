/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q5_1 matmul, AVX2. */
#include "kernels/x86/common_avx2.h"
#include "kernels/x86/mm.h"

enum { FMT_BYTES = sizeof(qk_q5_1), FMT_OFF = 0, FMT_MIN = 1 };

QK_INLINE __m256i fmt_unpack(const uint8_t *p)
{
    return _mm256_or_si256(qk_nibbles(p + 8), qk_fifth_bits(p + 4));
}

QK_INLINE __m256i fmt_dot(__m256i acc, __m256i w, __m256i x)
{
    return qk_dot(acc, w, x);
}

#include "kernels/x86/mm_block_avx2.h"

void qk_mm_q5_1_avx2(const qk_mm *m, size_t row0, size_t row1)
{
    mm_block(m, row0, row1);
}
