/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The limits of a machine for AVX-512 with VNNI. */
#include "kernels/x86/lanes_avx512vnni.h"
#include "tests/kernels/limits.h"

LIMITS(ck_avx512vnni)
