/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Choosing tokens, NEON. The order of the includes is the point: first the vector, then what is
 * written in terms of it. */
#include "kernels/arm/v_neon.h"
#include "kernels/generic/ops_pick.h"
