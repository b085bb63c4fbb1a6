/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Single precision rows for mm_float.h. */
#ifndef QSF_KERNELS_GENERIC_MM_F32_H
#define QSF_KERNELS_GENERIC_MM_F32_H

enum { FMT_BYTES = 4 };
static const float fmt_scale = 1;

QK_INLINE void fmt_load(const uint8_t *p, vf out[2]) {
    out[0] = v_load((const void *)p);
    out[1] = v_load((const void *)(p + FMT_BYTES * V));
}

#include "kernels/generic/mm_float.h"

#endif
