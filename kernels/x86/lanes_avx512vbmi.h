/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lanes at AVX-512 with VNNI and VBMI. */
#ifndef QSF_KERNELS_X86_LANES_AVX512VBMI_H
#define QSF_KERNELS_X86_LANES_AVX512VBMI_H

#define L_VNNI 1
#define L_VBMI 1
#include "kernels/x86/lanes_avx512.h"

#endif
