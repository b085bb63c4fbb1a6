/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bfloat16 matmul, AVX-512. */
#include "kernels/x86/common_avx512.h"
#include "kernels/x86/mm.h"

enum { FMT_BYTES = 2 };

QK_INLINE __m512 widen(__m256i h)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

QK_INLINE __m512 fmt_load(const uint8_t *p)
{
    return widen(_mm256_loadu_si256((const void *)p));
}

QK_INLINE __m512 fmt_load_some(const uint8_t *p, __mmask16 some)
{
    return widen(_mm256_maskz_loadu_epi16(some, (const void *)p));
}

#include "kernels/x86/float_avx512.h"

void qk_mm_bf16_avx512(const qk_mm *m, size_t row0, size_t row1)
{
    mm_float(m, row0, row1);
}
