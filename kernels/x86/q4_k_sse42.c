/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q4_K, SSE4.2. The order of the includes is the point: lanes, format, core. */
#include "kernels/x86/lanes_sse42.h"

#include "kernels/x16/fmt_q4_k.h"

#include "kernels/x16/mm_super.h"

QK_X16_CELL(q4_k_sse42)
