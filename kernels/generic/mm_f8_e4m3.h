/* SPDX-License-Identifier: GPL-3.0-or-later */
/* F8 E4M3 rows for mm_float.h. */
#ifndef QSF_KERNELS_GENERIC_MM_F8_E4M3_H
#define QSF_KERNELS_GENERIC_MM_F8_E4M3_H

#include "kernels/f8.h"

enum { FMT_BYTES = 1 };
static const float fmt_scale = QK_E4M3_SCALE;

QK_INLINE void fmt_load(const uint8_t *p, vf out[2]) { v_load_e4m3(p, out); }

#include "kernels/generic/mm_float.h"

#endif
