/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q5_0 at AVX-512: how two blocks become 64 bytes. Included after one of the dot headers. */
#ifndef QSF_KERNELS_X86_Q5_0_512_H
#define QSF_KERNELS_X86_Q5_0_512_H

enum { FMT_BYTES = sizeof(qk_q5_0), FMT_OFF = 16, FMT_MIN = 0 };

QK_INLINE __m512i fmt_unpack(const uint8_t *a, const uint8_t *b)
{
    const __m512i z = qk_load_16_16(a + 6, b + 6);
    const __m512i shift = _mm512_set_epi64(4, 4, 0, 0, 4, 4, 0, 0); /* upper nibbles: elements 16-31 of each block */
    const __m512i q = _mm512_and_si512(_mm512_srlv_epi64(z, shift), _mm512_set1_epi8(15));
    const uint64_t high = qk_load_u32(a + 2) | (uint64_t)qk_load_u32(b + 2) << 32;
    return _mm512_mask_add_epi8(q, (__mmask64)high, q, _mm512_set1_epi8(16));
}

QK_INLINE __m512i fmt_dot(__m512i acc, __m512i w, __m512i x)
{
    return qk_dot(acc, w, x);
}

#include "kernels/x86/mm_block_512.h"

#endif
