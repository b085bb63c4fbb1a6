/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The vector of floats for NEON in functions of the level with dot products. */
#ifndef QSF_KERNELS_ARM_V_DOTPROD_H
#define QSF_KERNELS_ARM_V_DOTPROD_H

#include "kernels/arm/v_neon.h"

#undef QK_FN
#define QK_FN(name) qk_##name##_dotprod

#endif
