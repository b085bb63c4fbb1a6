/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The limits of a machine for NEON with dot products. */
#include "kernels/arm/lanes_dotprod.h"
#include "tests/kernels/limits.h"

LIMITS(ck_dotprod)
