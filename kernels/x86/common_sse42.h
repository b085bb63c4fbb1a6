/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pieces shared by the SSE4.2 kernels: four rows at a time, one per lane. */
#ifndef QSF_KERNELS_X86_COMMON_SSE42_H
#define QSF_KERNELS_X86_COMMON_SSE42_H

#include <nmmintrin.h>

#include "kernels/act.h"
#include "kernels/load.h"

#define QK_INLINE static inline __attribute__((always_inline))

enum { QK_GROUP = 4 };

/* Sum of the products of 16 signed weights and 16 activations in four 32-bit lanes: the sign moves to x. */
QK_INLINE __m128i qk_dot_signed(__m128i acc, __m128i w, __m128i x)
{
    const __m128i pairs = _mm_maddubs_epi16(_mm_abs_epi8(w), _mm_sign_epi8(x, w));
    return _mm_add_epi32(acc, _mm_madd_epi16(pairs, _mm_set1_epi16(1)));
}

/* Lane r: the sum of the four lanes of z[r]. */
QK_INLINE __m128i qk_sum4(const __m128i z[QK_GROUP])
{
    return _mm_hadd_epi32(_mm_hadd_epi32(z[0], z[1]), _mm_hadd_epi32(z[2], z[3]));
}

#endif
