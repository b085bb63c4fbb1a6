/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q4_1, NEON. The order of the includes is the point: lanes, format, core. */
#include "kernels/arm/lanes_neon.h"

#include "kernels/x16/fmt_q4_1.h"

#include "kernels/x16/mm_block.h"

QK_X16_CELL(q4_1_neon)
