/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The limits of a machine for AVX2 with AVX-VNNI. */
#include "kernels/x86/lanes_avxvnni.h"
#include "tests/kernels/limits.h"

LIMITS(ck_avxvnni)
