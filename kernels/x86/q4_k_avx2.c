/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q4_K matmul, AVX2. */
#include "kernels/x86/common_avx2.h"
#include "kernels/x86/kscale_avx2.h"
#include "kernels/x86/mm.h"

enum { FMT_BYTES = sizeof(qk_q4_k) };

QK_INLINE __m256i fmt_unpack(const uint8_t *p, int j)
{
    return nibbles_of(p + 16, j);
}

#include "kernels/x86/mm_kquant_avx2.h"

void qk_mm_q4_k_avx2(const qk_mm *m, size_t row0, size_t row1)
{
    mm_kquant(m, row0, row1);
}
