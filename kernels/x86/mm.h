/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prototypes of the x86 matmuls; contract: qk_weight_ops.matmul in kernels/kernels.h. */
#ifndef QSF_KERNELS_X86_MM_H
#define QSF_KERNELS_X86_MM_H

#include "kernels/kernels.h"

#define QK_X86_MM(name) void qk_mm_##name(const qk_mm *m, size_t row0, size_t row1);

QK_X86_MM(f32_sse42)
QK_X86_MM(f32_avx2)
QK_X86_MM(f32_avx512)
QK_X86_MM(f16_avx2)
QK_X86_MM(f16_avx512)
QK_X86_MM(bf16_avx2)
QK_X86_MM(bf16_avx512)
QK_X86_MM(q8_0_sse42)
QK_X86_MM(q8_0_avx2)
QK_X86_MM(q8_0_avx512)
QK_X86_MM(q8_0_avx512vnni)
QK_X86_MM(q4_0_sse42)
QK_X86_MM(q4_0_avx2)
QK_X86_MM(q4_0_avx512)
QK_X86_MM(q4_0_avx512vnni)
QK_X86_MM(q4_1_avx2)
QK_X86_MM(q4_1_avx512)
QK_X86_MM(q4_1_avx512vnni)
QK_X86_MM(q5_0_avx2)
QK_X86_MM(q5_0_avx512)
QK_X86_MM(q5_0_avx512vnni)
QK_X86_MM(q5_1_avx2)
QK_X86_MM(q5_1_avx512)
QK_X86_MM(q5_1_avx512vnni)
QK_X86_MM(q4_k_avx2)
QK_X86_MM(q4_k_avx512)
QK_X86_MM(q4_k_avx512vnni)
QK_X86_MM(q5_k_avx2)
QK_X86_MM(q5_k_avx512)
QK_X86_MM(q5_k_avx512vnni)
QK_X86_MM(q6_k_avx2)
QK_X86_MM(q6_k_avx512)
QK_X86_MM(q6_k_avx512vnni)

#endif
