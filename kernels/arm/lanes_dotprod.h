/* SPDX-License-Identifier: GPL-3.0-or-later */
/* NEON lanes with the dot product instructions. */
#ifndef QSF_KERNELS_ARM_LANES_DOTPROD_H
#define QSF_KERNELS_ARM_LANES_DOTPROD_H

#define L_DOTPROD 1
#include "kernels/arm/lanes_neon.h"

#endif
