/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF 3-bit with codebooks, SSE4.2. The order of the includes is the point: lanes, format, core. */
#include "kernels/x86/lanes_sse42.h"

#include "kernels/x16/fmt_qsb3.h"

#include "kernels/x16/mm_super.h"

QK_X16_CELL(qsb3_sse42)
