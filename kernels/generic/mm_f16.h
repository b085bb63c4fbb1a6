/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Half precision rows for mm_float.h. */
#ifndef QSF_KERNELS_GENERIC_MM_F16_H
#define QSF_KERNELS_GENERIC_MM_F16_H

enum { FMT_BYTES = 2 };
static const float fmt_scale = 1;

QK_INLINE void fmt_load(const uint8_t *p, vf out[2]) {
    out[0] = v_load_half(p);
    out[1] = v_load_half(p + FMT_BYTES * V);
}

#include "kernels/generic/mm_float.h"

#endif
