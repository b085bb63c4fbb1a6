/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Single precision matmul, NEON. */
#include "kernels/arm/v_neon.h"

#include "kernels/arm/mm.h"

#include "kernels/generic/mm_f32.h"

QK_FLOAT_CELL(f32_neon)
