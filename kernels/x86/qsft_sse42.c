/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF ternary, SSE4.2. The order of the includes is the point: lanes, format, core. */
#include "kernels/x86/lanes_sse42.h"

#include "kernels/x16/fmt_qsft.h"

#include "kernels/x16/mm_block.h"

QK_X16_CELL(qsft_sse42)
