/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What MXFP4 and NVFP4 share: values of nibbles, made unsigned by adding the largest. */
#ifndef QSF_KERNELS_X16_FP4_X16_H
#define QSF_KERNELS_X16_FP4_X16_H

#include "kernels/x16/lanes.h"

enum { QK_FP4_MAX = 12 };

/* The values of the nibbles in the low half of each byte, plus QK_FP4_MAX. */
QK_INLINE li fp4_level(li q) {
    return l_add8(l_lookup(qk_fp4_values, l_and(q, l_bytes(15))), l_bytes(QK_FP4_MAX));
}

#endif
