/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The limits of a machine for NEON with products of matrices. */
#include "kernels/arm/lanes_i8mm.h"
#include "tests/kernels/limits.h"

LIMITS(ck_i8mm)
