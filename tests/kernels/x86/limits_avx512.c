/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The limits of a machine for AVX-512. */
#include "kernels/x86/lanes_avx512.h"
#include "tests/kernels/limits.h"

LIMITS(ck_avx512)
