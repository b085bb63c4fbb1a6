/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Choosing tokens, SSE4.2. The order of the includes is the point: first the vector, then what is
 * written in terms of it. */
#include "kernels/x86/v_sse42.h"
#include "kernels/generic/ops_pick.h"
