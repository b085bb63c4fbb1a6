/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Half precision matmul, AVX2. */
#include "kernels/x86/v_avx2.h"

#include "kernels/x86/mm.h"

#include "kernels/generic/mm_f16.h"

QK_FLOAT_CELL(f16_avx2)
