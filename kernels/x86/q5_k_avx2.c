/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q5_K matmul, AVX2. */
#include "kernels/x86/common_avx2.h"
#include "kernels/x86/kscale_avx2.h"
#include "kernels/x86/mm.h"

enum { FMT_BYTES = sizeof(qk_q5_k) };

QK_INLINE __m256i fmt_unpack(const uint8_t *p, int j)
{
    const __m256i bit = _mm256_set1_epi8((char)(1 << j)), high = _mm256_loadu_si256((const void *)(p + 16));
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(high, bit), bit);
    return _mm256_or_si256(nibbles_of(p + 48, j), _mm256_and_si256(set, _mm256_set1_epi8(16)));
}

#include "kernels/x86/mm_kquant_avx2.h"

void qk_mm_q5_k_avx2(const qk_mm *m, size_t row0, size_t row1)
{
    mm_kquant(m, row0, row1);
}
