/* SPDX-License-Identifier: GPL-3.0-or-later */
/* I2_S, AVX2. The order of the includes is the point: lanes, format, core. */
#include "kernels/x86/lanes_avx2.h"

#include "kernels/x16/fmt_i2_s.h"

#include "kernels/x16/mm_block.h"

QK_X16_CELL(i2_s_avx2)
