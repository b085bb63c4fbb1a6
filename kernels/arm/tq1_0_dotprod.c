/* SPDX-License-Identifier: GPL-3.0-or-later */
/* TQ1_0, NEON dot product. The order of the includes is the point: lanes, format, core. */
#include "kernels/arm/lanes_dotprod.h"

#include "kernels/x16/fmt_tq1_0.h"

#include "kernels/x16/mm_super.h"

QK_X16_CELL(tq1_0_dotprod)
