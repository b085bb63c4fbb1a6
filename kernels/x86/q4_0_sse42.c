/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q4_0 matmul, SSE4.2. */
#include "kernels/x86/common_sse42.h"
#include "kernels/x86/mm.h"

enum { FMT_BYTES = sizeof(qk_q4_0) };

QK_INLINE void fmt_unpack(const uint8_t *p, __m128i *lo, __m128i *hi)
{
    const __m128i q = _mm_loadu_si128((const void *)(p + 2)), low = _mm_set1_epi8(15),
                  eight = _mm_set1_epi8(8);
    *lo = _mm_sub_epi8(_mm_and_si128(q, low), eight);
    *hi = _mm_sub_epi8(_mm_and_si128(_mm_srli_epi16(q, 4), low), eight);
}

#include "kernels/x86/mm_block_sse42.h"

void qk_mm_q4_0_sse42(const qk_mm *m, size_t row0, size_t row1)
{
    mm_block(m, row0, row1);
}
