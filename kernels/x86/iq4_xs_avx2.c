/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IQ4_XS, AVX2. The order of the includes is the point: lanes, format, core. */
#include "kernels/x86/lanes_avx2.h"

#include "kernels/x16/fmt_iq4_xs.h"

#include "kernels/x16/mm_super.h"

QK_X16_CELL(iq4_xs_avx2)
