/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The limits of a machine at AVX-512 with VNNI and VBMI. */
#include "kernels/x86/lanes_avx512vbmi.h"
#include "tests/kernels/limits.h"

LIMITS(ck_avx512vbmi)
