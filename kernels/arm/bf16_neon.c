/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bfloat16 matmul, NEON. */
#include "kernels/arm/v_neon.h"

#include "kernels/arm/mm.h"

#include "kernels/generic/mm_bf16.h"

QK_FLOAT_CELL(bf16_neon)
