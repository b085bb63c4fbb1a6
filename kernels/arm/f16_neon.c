/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Half-precision matmul, NEON. */
#include "kernels/arm/mm.h"
#include "kernels/arm/v_neon.h"

enum { FMT_BYTES = 2 };

QK_INLINE vf fmt_load(const uint8_t *p)
{
    return v_load_half(p);
}

#include "kernels/arm/float_neon.h"

void qk_mm_f16_neon(const qk_mm *m, size_t row0, size_t row1)
{
    mm_float(m, row0, row1);
}
