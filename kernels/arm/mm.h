/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prototypes of the ARM matmuls; contract: qk_weight_ops in kernels/kernels.h. */
#ifndef QSF_KERNELS_ARM_MM_H
#define QSF_KERNELS_ARM_MM_H

#include "kernels/x16/cells.h"

#define QK_ARM_MM(name) void qk_mm_##name(const qk_mm *m, size_t row0, size_t row1);

QK_ARM_MM(f32_neon)
QK_ARM_MM(f16_neon)
QK_ARM_MM(bf16_neon)
QK_BLOCK_CELLS(neon)
QK_BLOCK_CELLS(dotprod)
QK_SUPER_CELLS(neon)
QK_SUPER_CELLS(dotprod)

#endif
