/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prototypes of the matmuls of every format at every level (kernels/formats.h), and macros that store those
 * of a level in the table; contracts: qk_weight_ops in kernels/matmul.h. */
#ifndef QSF_KERNELS_GENERIC_MM_H
#define QSF_KERNELS_GENERIC_MM_H

#include "kernels/formats.h"
#include "kernels/matmul.h"

#define QK_MM_FLOAT(name) void qk_mm_##name(const qk_mm *m, size_t row0, size_t row1);
#define QK_MM_BLOCK(name)                                          \
    void qk_mm_##name(const qk_mm *m, size_t row0, size_t row1);   \
    void qk_mm16_##name(const qk_mm *m, size_t row0, size_t row1); \
    void qk_pack_##name(void *dst, const void *src, size_t row_bytes, size_t k);
#define QK_MM_SUPER(name) QK_MM_BLOCK(name)
#define QK_MM_GRID(name)  QK_MM_BLOCK(name)

#define QK_MM_FORMAT(isa, fmt, TYPE, ggml, elems, bytes, planes, tail, core) QK_MM_##core(fmt##_##isa)
#define QK_MM_LEVEL(isa, LEVEL, arch, kernels)                               QK_FORMATS(QK_MM_FORMAT, isa)
QK_KERNEL_LEVELS(QK_MM_LEVEL)

/* For a function in which t is the table. */
#define QK_SET_FLOAT(type, fn)  \
    t->weight[type].name = #fn; \
    t->weight[type].matmul = qk_mm_##fn;
#define QK_SET_BLOCK(type, fn)               \
    t->weight[type].name = #fn;              \
    t->weight[type].matmul = qk_mm_##fn;     \
    t->weight[type].matmul16 = qk_mm16_##fn; \
    t->weight[type].pack = qk_pack_##fn;
#define QK_SET_SUPER(type, fn) QK_SET_BLOCK(type, fn)
#define QK_SET_GRID(type, fn)  QK_SET_BLOCK(type, fn)

#define QK_SET_FORMAT(isa, fmt, TYPE, ggml, elems, bytes, planes, tail, core) \
    QK_SET_##core(QK_##TYPE, fmt##_##isa)
#define QK_SET_FORMATS(isa) QK_FORMATS(QK_SET_FORMAT, isa)

#define QK_SET_PACKED_FLOAT(type, fn)
#define QK_SET_PACKED_BLOCK(type, fn) QK_SET_BLOCK(type, fn)
#define QK_SET_PACKED_SUPER(type, fn) QK_SET_BLOCK(type, fn)
#define QK_SET_PACKED_GRID(type, fn)  QK_SET_BLOCK(type, fn)
#define QK_SET_PACKED_FORMAT(isa, fmt, TYPE, ggml, elems, bytes, planes, tail, core) \
    QK_SET_PACKED_##core(QK_##TYPE, fmt##_##isa)
#define QK_SET_PACKED_FORMATS(isa) QK_FORMATS(QK_SET_PACKED_FORMAT, isa)

#define QK_SET_GRIDS_FLOAT(type, fn)
#define QK_SET_GRIDS_BLOCK(type, fn)
#define QK_SET_GRIDS_SUPER(type, fn)
#define QK_SET_GRIDS_GRID(type, fn) QK_SET_BLOCK(type, fn)
#define QK_SET_GRIDS_FORMAT(isa, fmt, TYPE, ggml, elems, bytes, planes, tail, core) \
    QK_SET_GRIDS_##core(QK_##TYPE, fmt##_##isa)
#define QK_SET_GRID_FORMATS(isa) QK_FORMATS(QK_SET_GRIDS_FORMAT, isa)

#endif
