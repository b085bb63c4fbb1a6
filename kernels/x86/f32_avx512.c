/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Single-precision matmul, AVX-512. */
#include "kernels/x86/common_avx512.h"
#include "kernels/x86/mm.h"

enum { FMT_BYTES = 4 };

QK_INLINE __m512 fmt_load(const uint8_t *p)
{
    return _mm512_loadu_ps((const void *)p);
}

QK_INLINE __m512 fmt_load_some(const uint8_t *p, __mmask16 some)
{
    return _mm512_maskz_loadu_ps(some, (const void *)p);
}

#include "kernels/x86/float_avx512.h"

void qk_mm_f32_avx512(const qk_mm *m, size_t row0, size_t row1)
{
    mm_float(m, row0, row1);
}
