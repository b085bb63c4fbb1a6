/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Half-precision matmul, AVX2. */
#include "kernels/x86/common_avx2.h"
#include "kernels/x86/mm.h"

enum { FMT_BYTES = 2 };

QK_INLINE __m256 fmt_load(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)p));
}

#include "kernels/x86/float_avx2.h"

void qk_mm_f16_avx2(const qk_mm *m, size_t row0, size_t row1)
{
    mm_float(m, row0, row1);
}
