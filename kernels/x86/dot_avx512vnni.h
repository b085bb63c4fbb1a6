/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Integer dot products with VNNI; the same functions as dot_avx512.h. */
#ifndef QSF_KERNELS_X86_DOT_AVX512VNNI_H
#define QSF_KERNELS_X86_DOT_AVX512VNNI_H

#include "kernels/x86/common_avx512.h"

/* acc + sums of four products per 32-bit lane; w unsigned, x signed. */
QK_INLINE __m512i qk_dot(__m512i acc, __m512i w, __m512i x)
{
    return _mm512_dpbusd_epi32(acc, w, x);
}

/* Signed weights are made unsigned by an offset, which the caller takes off with the sum of x. */
QK_INLINE __m512i qk_dot_signed(__m512i acc, __m512i w, __m512i x)
{
    return _mm512_dpbusd_epi32(acc, w, x);
}

enum { QK_SIGNED_OFFSET = 128 };

QK_INLINE __m512i qk_signed_weights(__m512i w)
{
    return _mm512_xor_si512(w, _mm512_set1_epi8((char)-128));
}

/* acc + products of 16-bit pairs. */
QK_INLINE __m512i qk_dot16(__m512i acc, __m512i a, __m512i b)
{
    return _mm512_dpwssd_epi32(acc, a, b);
}

/* acc + scale * (sum of four products) per 32-bit lane. The sum fits 16 bits (4 * 63 * 127), so
 * a scale in the lower half of the lane and zero in the upper multiplies exactly it. */
#define QK_SCALE_MASK 0x55555555u

QK_INLINE __m512i qk_dot_scaled(__m512i acc, __m512i w, __m512i x, __m512i scale)
{
    return _mm512_dpwssd_epi32(acc, _mm512_dpbusd_epi32(_mm512_setzero_si512(), w, x), scale);
}

#endif
