/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Softmax and gated activations, NEON. The order of the includes is the point: first the vector, then what is
 * written in terms of it. */
#include "kernels/arm/v_neon.h"
#include "kernels/generic/exp.h"
#include "kernels/generic/ops_softmax.h"
#include "kernels/generic/ops_act.h"
