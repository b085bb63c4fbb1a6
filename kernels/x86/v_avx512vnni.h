/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The vector of floats for AVX-512 in functions of the level with VNNI. */
#ifndef QSF_KERNELS_X86_V_AVX512VNNI_H
#define QSF_KERNELS_X86_V_AVX512VNNI_H

#include "kernels/x86/v_avx512.h"

#undef QK_FN
#define QK_FN(name) qk_##name##_avx512vnni

#endif
