/* SPDX-License-Identifier: GPL-3.0-or-later */
/* For loops with a constant count whose index must be a constant, in shifts and as a register number. */
#ifndef QSF_KERNELS_UNROLL_H
#define QSF_KERNELS_UNROLL_H

#ifdef __clang__
#define QK_UNROLL _Pragma("unroll")
#else
#define QK_UNROLL _Pragma("GCC unroll 64")
#endif

#endif
