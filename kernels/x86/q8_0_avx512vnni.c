/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q8_0 matmul, AVX-512 with VNNI. */
#include "kernels/x86/dot_avx512vnni.h"
#include "kernels/x86/mm.h"
#include "kernels/x86/q8_0_512.h"

void qk_mm_q8_0_avx512vnni(const qk_mm *m, size_t row0, size_t row1)
{
    mm_block(m, row0, row1);
}
