/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF 4-bit with codebooks, AVX2. The order of the includes is the point: lanes, format, core. */
#include "kernels/x86/lanes_avx2.h"

#include "kernels/x16/fmt_qsb4.h"

#include "kernels/x16/mm_super.h"

QK_X16_CELL(qsb4_avx2)
