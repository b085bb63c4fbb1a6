/* SPDX-License-Identifier: GPL-3.0-or-later */
/* I2_S, AVX-512 with VNNI. The order of the includes is the point: lanes, format, core. */
#include "kernels/x86/lanes_avx512vnni.h"

#include "kernels/x16/fmt_i2_s.h"

#include "kernels/x16/mm_block.h"

QK_X16_CELL(i2_s_avx512vnni)
