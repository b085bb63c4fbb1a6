/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF ternary, NEON dot product. The order of the includes is the point: lanes, format, core. */
#include "kernels/arm/lanes_dotprod.h"

#include "kernels/x16/fmt_qsft.h"

#include "kernels/x16/mm_block.h"

QK_X16_CELL(qsft_dotprod)
