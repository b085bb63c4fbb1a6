/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Choosing tokens, AVX-512. The order of the includes is the point: first the vector, then what is
 * written in terms of it. */
#include "kernels/x86/v_avx512.h"
#include "kernels/generic/ops_pick.h"
