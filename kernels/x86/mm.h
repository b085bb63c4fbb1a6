/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prototypes of the x86 matmuls; contract: qk_weight_ops.matmul in kernels/kernels.h. */
#ifndef QSF_KERNELS_X86_MM_H
#define QSF_KERNELS_X86_MM_H

#include "kernels/x16/cells.h"

#define QK_X86_MM(name) void qk_mm_##name(const qk_mm *m, size_t row0, size_t row1);

QK_X86_MM(f32_sse42)
QK_X86_MM(f32_avx2)
QK_X86_MM(f32_avx512)
QK_X86_MM(f16_sse42)
QK_X86_MM(f16_avx2)
QK_X86_MM(f16_avx512)
QK_X86_MM(bf16_sse42)
QK_X86_MM(bf16_avx2)
QK_X86_MM(bf16_avx512)
QK_BLOCK_CELLS(sse42)
QK_BLOCK_CELLS(avx2)
QK_BLOCK_CELLS(avx512)
QK_BLOCK_CELLS(avx512vnni)
QK_SUPER_CELLS(sse42)
QK_SUPER_CELLS(avx2)
QK_SUPER_CELLS(avx512)
QK_SUPER_CELLS(avx512vnni)

#endif
