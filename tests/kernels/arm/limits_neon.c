/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The limits of a machine for NEON. */
#include "kernels/arm/lanes_neon.h"
#include "tests/kernels/limits.h"

LIMITS(ck_neon)
