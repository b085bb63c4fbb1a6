/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention over cached tiles, SSE4.2. The order of the includes is the point: first the vector, then what is
 * written in terms of it. */
#include <math.h>

#include "kernels/x86/v_sse42.h"
#include "kernels/generic/kv_exp.h"
#include "kernels/generic/kv_block.h"
#include "kernels/generic/kv_attend.h"
#include "kernels/generic/kv_formats.h"
#include "kernels/generic/kv_quant4.h"
