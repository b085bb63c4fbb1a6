/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Q4_K at AVX-512: how 64 elements of a super-block become bytes. Included after one of the dot
 * headers. */
#ifndef QSF_KERNELS_X86_Q4_K_512_H
#define QSF_KERNELS_X86_Q4_K_512_H

#include "kernels/x86/kscale_512.h"

enum { FMT_BYTES = sizeof(qk_q4_k) };

QK_INLINE __m512i fmt_unpack(const uint8_t *p, int j)
{
    return nibbles_of(p + 16 + 32 * j);
}

#include "kernels/x86/mm_kquant_512.h"

#endif
