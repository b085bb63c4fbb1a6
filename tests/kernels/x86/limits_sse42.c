/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The limits of a machine for SSE4.2. */
#include "kernels/x86/lanes_sse42.h"
#include "tests/kernels/limits.h"

LIMITS(ck_sse42)
