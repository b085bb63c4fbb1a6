/* SPDX-License-Identifier: GPL-3.0-or-later */
/* AVX2 lanes with AVX-VNNI. A compiler that does not know it makes functions of AVX2, which are not used
 * (built.h). QK_AVXVNNI_EVEX: the same instructions in the encoding of AVX-512, to check this level on a CPU
 * without AVX-VNNI (docs/TESTING.md). */
#ifndef QSF_KERNELS_X86_LANES_AVXVNNI_H
#define QSF_KERNELS_X86_LANES_AVXVNNI_H

#ifdef QK_AVXVNNI_EVEX
#define L_VNNI(operation) _mm256_##operation##_epi32
#elif defined __AVXVNNI__
#define L_VNNI(operation) _mm256_##operation##_avx_epi32
#endif
#include "kernels/x86/lanes_avx2.h"

#endif
