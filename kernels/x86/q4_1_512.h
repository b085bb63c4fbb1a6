/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q4_1 at AVX-512: how two blocks become 64 bytes. Included after one of the dot headers. */
#ifndef QSF_KERNELS_X86_Q4_1_512_H
#define QSF_KERNELS_X86_Q4_1_512_H

enum { FMT_BYTES = sizeof(qk_q4_1), FMT_OFF = 0, FMT_MIN = 1 };

QK_INLINE __m512i fmt_unpack(const uint8_t *a, const uint8_t *b)
{
    return qk_nibbles_2(a + 4, b + 4);
}

QK_INLINE __m512i fmt_dot(__m512i acc, __m512i w, __m512i x)
{
    return qk_dot(acc, w, x);
}

#include "kernels/x86/mm_block_512.h"

#endif
