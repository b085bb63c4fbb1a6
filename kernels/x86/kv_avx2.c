/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention over cached tiles, AVX2. The order of the includes is the point: first the vector, then what is
 * written in terms of it. */
#include <math.h>

#include "kernels/x86/v_avx2.h"
#include "kernels/generic/kv_exp.h"
#include "kernels/generic/kv_block.h"
#include "kernels/generic/kv_attend.h"
#include "kernels/generic/kv_formats.h"
#include "kernels/generic/kv_quant4.h"
