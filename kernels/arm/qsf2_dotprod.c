/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF 2-bit, NEON dot product. The order of the includes is the point: lanes, format, core. */
#include "kernels/arm/lanes_dotprod.h"

#include "kernels/x16/fmt_qsf2.h"

#include "kernels/x16/mm_block.h"

QK_X16_CELL(qsf2_dotprod)
