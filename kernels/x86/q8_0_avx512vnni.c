/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q8_0, AVX-512 with VNNI. The order of the includes is the point: lanes, format, core. */
#include "kernels/x86/lanes_avx512vnni.h"

#include "kernels/x16/fmt_q8_0.h"

#include "kernels/x16/mm_block.h"

QK_X16_CELL(q8_0_avx512vnni)
