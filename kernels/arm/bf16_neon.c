/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bfloat16 matmul, NEON. */
#include "kernels/arm/mm.h"
#include "kernels/arm/v_neon.h"

enum { FMT_BYTES = 2 };

QK_INLINE vf fmt_load(const uint8_t *p)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
}

#include "kernels/arm/float_neon.h"

void qk_mm_bf16_neon(const qk_mm *m, size_t row0, size_t row1)
{
    mm_float(m, row0, row1);
}
