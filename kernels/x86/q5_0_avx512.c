/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q5_0 matmul, AVX-512. */
#include "kernels/x86/dot_avx512.h"
#include "kernels/x86/mm.h"
#include "kernels/x86/q5_0_512.h"

void qk_mm_q5_0_avx512(const qk_mm *m, size_t row0, size_t row1)
{
    mm_block(m, row0, row1);
}
