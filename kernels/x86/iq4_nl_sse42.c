/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IQ4_NL, SSE4.2. The order of the includes is the point: lanes, format, core. */
#include "kernels/x86/lanes_sse42.h"

#include "kernels/x16/fmt_iq4_nl.h"

#include "kernels/x16/mm_block.h"

QK_X16_CELL(iq4_nl_sse42)
