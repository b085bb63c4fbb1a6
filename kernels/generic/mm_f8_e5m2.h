/* SPDX-License-Identifier: GPL-3.0-or-later */
/* F8 E5M2 rows for mm_float.h. */
#ifndef QSF_KERNELS_GENERIC_MM_F8_E5M2_H
#define QSF_KERNELS_GENERIC_MM_F8_E5M2_H

enum { FMT_BYTES = 1 };
static const float fmt_scale = 1;

QK_INLINE void fmt_load(const uint8_t *p, vf out[2]) { v_load_e5m2(p, out); }

#include "kernels/generic/mm_float.h"

#endif
