/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Single precision matmul, AVX-512. */
#include "kernels/x86/v_avx512.h"

#include "kernels/x86/mm.h"

#include "kernels/generic/mm_f32.h"

QK_FLOAT_CELL(f32_avx512)
