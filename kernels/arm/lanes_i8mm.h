/* SPDX-License-Identifier: GPL-3.0-or-later */
/* NEON lanes with the dot product instructions and those for matrices of bytes. A compiler that does not know
 * the latter makes the functions of the level below, which are not used (built.h). */
#ifndef QSF_KERNELS_ARM_LANES_I8MM_H
#define QSF_KERNELS_ARM_LANES_I8MM_H

#define L_DOTPROD 1
#define L_I8MM    1
#include "kernels/arm/lanes_neon.h"

#endif
