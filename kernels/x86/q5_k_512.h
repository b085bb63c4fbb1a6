/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q5_K at AVX-512: how 64 elements of a super-block become bytes. Included after one of the dot
 * headers. */
#ifndef QSF_KERNELS_X86_Q5_K_512_H
#define QSF_KERNELS_X86_Q5_K_512_H

#include "kernels/x86/kscale_512.h"

enum { FMT_BYTES = sizeof(qk_q5_k) };

QK_INLINE __m512i fmt_unpack(const uint8_t *p, int j)
{
    const __m512i q = nibbles_of(p + 48 + 32 * j);
    const __m512i high = _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)(p + 16)));
    const __m512i bit =
        _mm512_inserti64x4(_mm512_set1_epi8((char)(1 << 2 * j)), _mm256_set1_epi8((char)(2 << 2 * j)), 1);
    return _mm512_mask_add_epi8(q, _mm512_test_epi8_mask(high, bit), q, _mm512_set1_epi8(16));
}

#include "kernels/x86/mm_kquant_512.h"

#endif
