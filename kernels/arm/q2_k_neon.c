/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q2_K, NEON. The order of the includes is the point: lanes, format, core. */
#include "kernels/arm/lanes_neon.h"

#include "kernels/x16/fmt_q2_k.h"

#include "kernels/x16/mm_super.h"

QK_X16_CELL(q2_k_neon)
