/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Single-precision matmul, AVX2. */
#include "kernels/x86/common_avx2.h"
#include "kernels/x86/mm.h"

enum { FMT_BYTES = 4 };

QK_INLINE __m256 fmt_load(const uint8_t *p)
{
    return _mm256_loadu_ps((const void *)p);
}

#include "kernels/x86/float_avx2.h"

void qk_mm_f32_avx2(const qk_mm *m, size_t row0, size_t row1)
{
    mm_float(m, row0, row1);
}
