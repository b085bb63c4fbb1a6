/* SPDX-License-Identifier: GPL-3.0-or-later */
/* AVX-512 lanes with VNNI. */
#ifndef QSF_KERNELS_X86_LANES_AVX512VNNI_H
#define QSF_KERNELS_X86_LANES_AVX512VNNI_H

#define L_VNNI 1
#include "kernels/x86/lanes_avx512.h"

#endif
