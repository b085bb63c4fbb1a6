/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bfloat16 rows for mm_float.h. */
#ifndef QSF_KERNELS_GENERIC_MM_BF16_H
#define QSF_KERNELS_GENERIC_MM_BF16_H

enum { FMT_BYTES = 2 };

QK_INLINE vf fmt_load(const uint8_t *p) { return v_load_bf16(p); }

QK_INLINE vf fmt_load_some(const uint8_t *p, size_t n) { return v_load_bf16_some(p, n); }

#include "kernels/generic/mm_float.h"

#endif
