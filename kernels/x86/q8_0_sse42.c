/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q8_0 matmul, SSE4.2. */
#include "kernels/x86/common_sse42.h"
#include "kernels/x86/mm.h"

enum { FMT_BYTES = sizeof(qk_q8_0) };

QK_INLINE void fmt_unpack(const uint8_t *p, __m128i *lo, __m128i *hi)
{
    *lo = _mm_loadu_si128((const void *)(p + 2));
    *hi = _mm_loadu_si128((const void *)(p + 18));
}

#include "kernels/x86/mm_block_sse42.h"

void qk_mm_q8_0_sse42(const qk_mm *m, size_t row0, size_t row1)
{
    mm_block(m, row0, row1);
}
