/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The limits of a machine for the vectors of WebAssembly. */
#include "kernels/wasm/lanes_wasm.h"
#include "tests/kernels/limits.h"

LIMITS(ck_wasm)
