/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What MXFP4 and NVFP4 share: values of nibbles, made unsigned by adding the largest. */
#ifndef QSF_KERNELS_X16_FP4_X16_H
#define QSF_KERNELS_X16_FP4_X16_H

#include "kernels/x16/lanes.h"

enum { QK_FP4_MAX = 12 };

/* The values of the low (upper = 0) or upper nibbles, plus QK_FP4_MAX. */
QK_INLINE li fp4_level(li q, int upper) {
    return l_add8(l_lookup(qk_fp4_values, l_field(q, 4 * upper, 4)), l_bytes(QK_FP4_MAX));
}

#endif
