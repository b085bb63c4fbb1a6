/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows to groups and back (x16.h), the same code for every level: qk_weight_ops.pack and unpack_row. */
#ifndef QSF_KERNELS_X16_PACK_H
#define QSF_KERNELS_X16_PACK_H

#include <stddef.h>

#define QK_PACK(fmt)                                                                 \
    void qk_pack_##fmt(void *dst, const void *src, size_t row_bytes, size_t k);      \
    void qk_unpack_row_##fmt(void *dst, const void *group, unsigned r, size_t k);

QK_PACK(q8_0)
QK_PACK(q4_0)
QK_PACK(q4_1)
QK_PACK(q5_0)
QK_PACK(q5_1)
QK_PACK(q4_k)
QK_PACK(q5_k)
QK_PACK(q6_k)
QK_PACK(q2_k)
QK_PACK(q3_k)
QK_PACK(iq4_nl)
QK_PACK(iq4_xs)
QK_PACK(tq1_0)
QK_PACK(tq2_0)
QK_PACK(i2_s)
QK_PACK(qsf2)
QK_PACK(qsf3)
QK_PACK(qsf4)
QK_PACK(qsft)
QK_PACK(qsb2)
QK_PACK(qsb3)
QK_PACK(qsb4)

#undef QK_PACK

#endif
