/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q5_0, NEON. The order of the includes is the point: lanes, format, core. */
#include "kernels/arm/lanes_neon.h"

#include "kernels/x16/fmt_q5_0.h"

#include "kernels/x16/mm_block.h"

QK_X16_CELL(q5_0_neon)
