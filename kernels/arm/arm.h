/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ARM overlay's one entry. */
#ifndef QSF_KERNELS_ARM_ARM_H
#define QSF_KERNELS_ARM_ARM_H

#include "kernels/kernels.h"

/* Overlays NEON, then dotprod, up to `level` and sets t->level to the highest one used. */
void qk_init_arm(qk_table *t, qk_level level);

#endif
