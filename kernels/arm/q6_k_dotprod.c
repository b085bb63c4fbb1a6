/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q6_K, NEON dot product. The order of the includes is the point: lanes, format, core. */
#include "kernels/arm/lanes_dotprod.h"

#include "kernels/x16/fmt_q6_k.h"

#include "kernels/x16/mm_super.h"

QK_X16_CELL(q6_k_dotprod)
