/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF 4-bit, NEON. The order of the includes is the point: lanes, format, core. */
#include "kernels/arm/lanes_neon.h"

#include "kernels/x16/fmt_qsf4.h"

#include "kernels/x16/mm_block.h"

QK_X16_CELL(qsf4_neon)
