/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bfloat16 matmul, AVX2. */
#include "kernels/x86/common_avx2.h"
#include "kernels/x86/mm.h"

enum { FMT_BYTES = 2 };

QK_INLINE __m256 fmt_load(const uint8_t *p)
{
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p)), 16));
}

#include "kernels/x86/float_avx2.h"

void qk_mm_bf16_avx2(const qk_mm *m, size_t row0, size_t row1)
{
    mm_float(m, row0, row1);
}
