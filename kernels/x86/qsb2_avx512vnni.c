/* SPDX-License-Identifier: GPL-3.0-or-later */
/* QSF 2-bit with codebooks, AVX-512 with VNNI. The order of the includes is the point: lanes, format, core. */
#include "kernels/x86/lanes_avx512vnni.h"

#include "kernels/x16/fmt_qsb2.h"

#include "kernels/x16/mm_super.h"

QK_X16_CELL(qsb2_avx512vnni)
