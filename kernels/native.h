/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The vectors (kernels/generic/ops_*.h) and lanes (kernels/x16/lanes.h) of the one level of a single file:
 * of the highest level that the compiler's flags allow (kernels/built.h). */
#ifndef QSF_KERNELS_NATIVE_H
#define QSF_KERNELS_NATIVE_H

#include "kernels/built.h"

#if QK_BUILT_AVX512

#if QK_BUILT_AVX512VNNI
#define L_VNNI 1
#endif
#if QK_BUILT_AVX512VBMI
#define L_VBMI 1
#endif
#include "kernels/x86/lanes_avx512.h"
#include "kernels/x86/v_avx512.h"

#elif QK_BUILT_AVX2

#if QK_BUILT_AVXVNNI
#define L_VNNI(operation) _mm256_##operation##_avx_epi32
#endif
#include "kernels/x86/lanes_avx2.h"
#include "kernels/x86/v_avx2.h"

#elif QK_BUILT_SSE42

#include "kernels/x86/lanes_sse42.h"
#include "kernels/x86/v_sse42.h"

#elif QK_BUILT_NEON

#if QK_BUILT_DOTPROD
#define L_DOTPROD 1
#endif
#if QK_BUILT_I8MM
#define L_I8MM 1
#endif
#include "kernels/arm/lanes_neon.h"
#include "kernels/arm/v_neon.h"

#endif

#if QK_BUILT_NATIVE
#include "kernels/x16/lanes_rest.h"
#undef QK_FN
#define QK_FN(name) qk_##name##_native
#endif

#endif
