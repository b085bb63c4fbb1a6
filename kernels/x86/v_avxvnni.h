/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The vector of floats for AVX2 in functions of the level with AVX-VNNI. */
#ifndef QSF_KERNELS_X86_V_AVXVNNI_H
#define QSF_KERNELS_X86_V_AVXVNNI_H

#include "kernels/x86/v_avx2.h"

#undef QK_FN
#define QK_FN(name) qk_##name##_avxvnni

#endif
