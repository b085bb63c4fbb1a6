/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Integer dot products without VNNI. Weights are unsigned bytes up to 63, so that the 16-bit pairs of
 * vpmaddubsw (2 * 63 * 127) do not saturate. */
#ifndef QSF_KERNELS_X86_DOT_AVX512_H
#define QSF_KERNELS_X86_DOT_AVX512_H

#include "kernels/x86/common_avx512.h"

/* acc + sums of four products per 32-bit lane; w unsigned, x signed. */
QK_INLINE __m512i qk_dot(__m512i acc, __m512i w, __m512i x)
{
    return _mm512_add_epi32(acc, _mm512_madd_epi16(_mm512_maddubs_epi16(w, x), _mm512_set1_epi16(1)));
}

/* The same for signed weights: the sign moves to x. */
QK_INLINE __m512i qk_dot_signed(__m512i acc, __m512i w, __m512i x)
{
    const __m512i sx = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
    return qk_dot(acc, _mm512_abs_epi8(w), sx);
}

/* What the signed weights of Q8_0 become in a register, and the offset that adds to each. */
enum { QK_SIGNED_OFFSET = 0 };

QK_INLINE __m512i qk_signed_weights(__m512i w)
{
    return w;
}

/* acc + products of 16-bit pairs. */
QK_INLINE __m512i qk_dot16(__m512i acc, __m512i a, __m512i b)
{
    return _mm512_add_epi32(acc, _mm512_madd_epi16(a, b));
}

/* acc + scale * (sum of four products) per 32-bit lane; the scale stands in the 16-bit elements
 * that QK_SCALE_MASK names, zero in the others. */
#define QK_SCALE_MASK 0xffffffffu

QK_INLINE __m512i qk_dot_scaled(__m512i acc, __m512i w, __m512i x, __m512i scale)
{
    return _mm512_add_epi32(acc, _mm512_madd_epi16(_mm512_maddubs_epi16(w, x), scale));
}

#endif
