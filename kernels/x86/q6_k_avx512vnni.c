/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q6_K matmul, AVX-512 with VNNI. */
#include "kernels/x86/dot_avx512vnni.h"
#include "kernels/x86/mm.h"
#include "kernels/x86/q6_k_512.h"

void qk_mm_q6_k_avx512vnni(const qk_mm *m, size_t row0, size_t row1)
{
    mm_kquant(m, row0, row1);
}
