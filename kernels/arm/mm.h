/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prototypes of the ARM matmuls; contract: qk_weight_ops in kernels/kernels.h. */
#ifndef QSF_KERNELS_ARM_MM_H
#define QSF_KERNELS_ARM_MM_H

#include "kernels/kernels.h"

#define QK_ARM_MM(name) void qk_mm_##name(const qk_mm *m, size_t row0, size_t row1);
/* A cell of the interleaved formats: matmul, matmul16 and pack. */
#define QK_ARM_CELL(name)                                          \
    QK_ARM_MM(name)                                                \
    void qk_mm16_##name(const qk_mm *m, size_t row0, size_t row1); \
    void qk_pack_##name(void *dst, const void *src, size_t row_bytes, size_t k);
#define QK_ARM_CELLS(format) QK_ARM_CELL(format##_neon) QK_ARM_CELL(format##_dotprod)

QK_ARM_MM(f32_neon)
QK_ARM_MM(f16_neon)
QK_ARM_MM(bf16_neon)

#endif
