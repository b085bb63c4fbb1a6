/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prototypes of the KV functions that kv_formats.h makes for an ISA level; contracts: kernels/kernels.h. */
#ifndef QSF_KERNELS_GENERIC_KV_H
#define QSF_KERNELS_GENERIC_KV_H

#include "kernels/kernels.h"

#define QK_KV_FORMAT(fmt, isa)                                                                               \
    void qk_kv_##fmt##_attend_##isa(const qk_attn *a);                                                       \
    void qk_kv_##fmt##_attend_span_##isa(const qk_attn *a, size_t span, float *part, size_t part_stride);

#define QK_KV_OPS(isa)                                                                                       \
    QK_KV_FORMAT(f32, isa)                                                                                   \
    QK_KV_FORMAT(f16, isa)                                                                                   \
    QK_KV_FORMAT(q8, isa)                                                                                    \
    void qk_kv_f16_store_##isa(void *tiles, int which, size_t pos, const float *x, size_t dim);              \
    void qk_kv_q8_store_##isa(void *tiles, int which, size_t pos, const float *x, size_t dim);               \
    void qk_kv_merge_##isa(float *y, float *part, size_t n, size_t part_stride, size_t dim);

QK_KV_OPS(sse42)
QK_KV_OPS(avx2)
QK_KV_OPS(avx512)
QK_KV_OPS(neon)

#endif
