/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Single-precision matmul, NEON. */
#include "kernels/arm/mm.h"
#include "kernels/arm/v_neon.h"

enum { FMT_BYTES = 4 };

QK_INLINE vf fmt_load(const uint8_t *p)
{
    return vreinterpretq_f32_u8(vld1q_u8(p));
}

#include "kernels/arm/float_neon.h"

void qk_mm_f32_neon(const qk_mm *m, size_t row0, size_t row1)
{
    mm_float(m, row0, row1);
}
