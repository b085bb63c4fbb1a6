/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prototypes of the KV functions that kv_formats.h defines for an ISA level, and a macro that stores them in
 * the table; contracts: kernels/kernels.h. */
#ifndef QSF_KERNELS_GENERIC_KV_H
#define QSF_KERNELS_GENERIC_KV_H

#include "kernels/kernels.h"

#define QK_KV_ATTEND(isa, fmt, NAME, bits, latent, dims)                                                  \
    void qk_kv_##fmt##_attend_##isa(const qk_attn *a);                                                    \
    void qk_kv_##fmt##_attend_span_##isa(const qk_attn *a, size_t span, float *part, size_t part_stride); \
    void qk_kv_##fmt##_merge_##isa(float *y, float *part, size_t n, size_t part_stride, size_t dim,       \
                                   const float *sink);
#define QK_KV_STORE(isa, fmt, NAME, bits, latent, dims) \
    void qk_kv_##fmt##_store_##isa(void *tiles, int which, size_t pos, const float *x, size_t dim);

#define QK_KV_ROWS(isa, fmt, NAME, bits, latent, dims) \
    void qk_kv_##fmt##_rows_##isa(const qk_kv_rows *x, int nq);

/* Of packed tiles of V, which the same level's attention adds times weights (kv_rows.h). */
typedef struct qk_kv_rows {
    const char *const *tile; /* n */
    const char *ahead;       /* tiles that are needed next, NULL for none */
    size_t n, dim;
    const int8_t *high, *low; /* weights as integers (nq, QK_KV_BLOCK), n tiles of them: 128 * high + low */
    const float *scale;       /* (nq) what they are multiplied with, 0: nothing is added */
    const int32_t *sum;       /* (nq) of the integers */
    float *acc;               /* sums (nq, dim), `stride` apart: added to */
    size_t stride;
} qk_kv_rows;

#define QK_KV_OPS(isa)              \
    QK_KV_TYPES(QK_KV_ATTEND, isa)  \
    QK_KV_ROUNDED(QK_KV_STORE, isa) \
    QK_KV_PACKED(QK_KV_ROWS, isa)

/* Stores them in the table. */
#define QK_SET_KV_ATTEND(isa, fmt, NAME, bits, latent, dims)             \
    (t)->kv[QK_KV_##NAME].attend = qk_kv_##fmt##_attend_##isa;           \
    (t)->kv[QK_KV_##NAME].attend_span = qk_kv_##fmt##_attend_span_##isa; \
    (t)->kv[QK_KV_##NAME].merge = qk_kv_##fmt##_merge_##isa;
#define QK_SET_KV_STORE(isa, fmt, NAME, bits, latent, dims) \
    (t)->kv[QK_KV_##NAME].store = qk_kv_##fmt##_store_##isa;
#define QK_SET_KV(t, isa)                   \
    do {                                    \
        QK_KV_TYPES(QK_SET_KV_ATTEND, isa)  \
        QK_KV_ROUNDED(QK_SET_KV_STORE, isa) \
    } while (0)

/* The levels with ALL or PACKED in kernels/formats.h. */
#define QK_KV_OPS_ALL(isa)    QK_KV_OPS(isa)
#define QK_KV_OPS_PACKED(isa) QK_KV_OPS(isa)
#define QK_KV_OPS_WEIGHTS(isa)
#define QK_KV_OPS_GRIDS(isa)
#define QK_KV_OPS_LEVEL(isa, LEVEL, arch, kernels) QK_KV_OPS_##kernels(isa)
QK_KERNEL_LEVELS(QK_KV_OPS_LEVEL)

#endif
