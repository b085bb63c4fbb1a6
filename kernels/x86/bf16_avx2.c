/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bfloat16 matmul, AVX2. */
#include "kernels/x86/v_avx2.h"

#include "kernels/x86/mm.h"

#include "kernels/generic/mm_bf16.h"

QK_FLOAT_CELL(bf16_avx2)
