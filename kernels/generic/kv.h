/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prototypes of the KV functions that kv_formats.h defines for an ISA level, and a macro that stores them in
 * the table; contracts: kernels/kernels.h. */
#ifndef QSF_KERNELS_GENERIC_KV_H
#define QSF_KERNELS_GENERIC_KV_H

#include "kernels/kernels.h"

#define QK_KV_FORMAT(fmt, isa)                         \
    void qk_kv_##fmt##_attend_##isa(const qk_attn *a); \
    void qk_kv_##fmt##_attend_span_##isa(const qk_attn *a, size_t span, float *part, size_t part_stride);

#define QK_KV_OPS(isa)                                                                                       \
    QK_KV_FORMAT(f32, isa)                                                                                   \
    QK_KV_FORMAT(f16, isa)                                                                                   \
    QK_KV_FORMAT(q8, isa)                                                                                    \
    void qk_kv_f16_store_##isa(void *tiles, int which, size_t pos, const float *x, size_t dim);              \
    void qk_kv_q8_store_##isa(void *tiles, int which, size_t pos, const float *x, size_t dim);               \
    void qk_kv_quantize4_##isa(uint8_t *q, uint16_t *scale, uint16_t *min, const float *x, size_t n);        \
    void qk_kv_dequantize4_##isa(float *x, const uint8_t *q, uint16_t scale, const uint16_t *min, size_t n); \
    void qk_kv_merge_##isa(float *y, float *part, size_t n, size_t part_stride, size_t dim,                  \
                           const float *sink);

/* Stores them in the table. */
#define QK_SET_KV(t, isa)                                                       \
    do {                                                                        \
        for (int i = 0; i < QK_KV_N; i++) (t)->kv[i].merge = qk_kv_merge_##isa; \
        (t)->kv_quantize4 = qk_kv_quantize4_##isa;                              \
        (t)->kv_dequantize4 = qk_kv_dequantize4_##isa;                          \
        (t)->kv[QK_KV_F32].attend = qk_kv_f32_attend_##isa;                     \
        (t)->kv[QK_KV_F32].attend_span = qk_kv_f32_attend_span_##isa;           \
        (t)->kv[QK_KV_F16].store = qk_kv_f16_store_##isa;                       \
        (t)->kv[QK_KV_F16].attend = qk_kv_f16_attend_##isa;                     \
        (t)->kv[QK_KV_F16].attend_span = qk_kv_f16_attend_span_##isa;           \
        (t)->kv[QK_KV_Q8].store = qk_kv_q8_store_##isa;                         \
        (t)->kv[QK_KV_Q8].attend = qk_kv_q8_attend_##isa;                       \
        (t)->kv[QK_KV_Q8].attend_span = qk_kv_q8_attend_span_##isa;             \
    } while (0)

/* The levels with ALL in kernels/formats.h. */
#define QK_KV_OPS_ALL(isa) QK_KV_OPS(isa)
#define QK_KV_OPS_PACKED(isa)
#define QK_KV_OPS_GRIDS(isa)
#define QK_KV_OPS_LEVEL(isa, LEVEL, arch, kernels) QK_KV_OPS_##kernels(isa)
QK_LEVELS(QK_KV_OPS_LEVEL)

#endif
