/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF 4-bit with codebooks, NEON with dot products. The order of the includes is the point: lanes, format, core. */
#include "kernels/arm/lanes_dotprod.h"

#include "kernels/x16/fmt_qsb4.h"

#include "kernels/x16/mm_super.h"

QK_X16_CELL(qsb4_dotprod)
