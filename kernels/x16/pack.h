/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows to groups and back (x16.h), the same code for every level: qk_weight_ops.pack and unpack_row. */
#ifndef QSF_KERNELS_X16_PACK_H
#define QSF_KERNELS_X16_PACK_H

#include <stddef.h>

#include "kernels/formats.h"
#include "kernels/x16/x16.h"

#define QK_PACK_FLOAT(fmt)
#define QK_PACK_BLOCK(fmt)                                                      \
    void qk_pack_##fmt(void *dst, const void *src, size_t row_bytes, size_t k); \
    void qk_unpack_row_##fmt(void *dst, const void *group, unsigned r, size_t k);
#define QK_PACK_SUPER(fmt)                                            QK_PACK_BLOCK(fmt)
#define QK_PACK_GRID(fmt)                                             QK_PACK_BLOCK(fmt)
#define QK_PACK(a, fmt, TYPE, ggml, elems, bytes, planes, tail, core) QK_PACK_##core(fmt)
QK_FORMATS(QK_PACK, )

/* qk_weight_ops.by_use and by_block. */
#define QK_REORDER(fmt, TYPE)                    \
    void qk_by_use_##fmt(void *group, size_t k); \
    void qk_by_block_##fmt(void *group, size_t k);
QK_BY_USE(QK_REORDER)

#endif
