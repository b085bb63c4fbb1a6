/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q4_0, NEON dot product. The order of the includes is the point: lanes, format, core. */
#include "kernels/arm/lanes_dotprod.h"

#include "kernels/x16/fmt_q4_0.h"

#include "kernels/x16/mm_block.h"

QK_X16_CELL(q4_0_dotprod)
