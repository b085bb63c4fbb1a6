/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The limits of a machine for AVX2. */
#include "kernels/x86/lanes_avx2.h"
#include "tests/kernels/limits.h"

LIMITS(ck_avx2)
