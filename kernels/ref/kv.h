/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Index of an element of a cached K or V, for all levels. */
#ifndef QSF_KERNELS_REF_KV_H
#define QSF_KERNELS_REF_KV_H

#include "kernels/kernels.h"

/* Index of element i of a position, counted in elements from tile 0: K is transposed inside its tile. */
static inline size_t qk_kv_place(int which, size_t pos, size_t i, size_t dim) {
    const size_t tile = pos / QK_KV_TILE, in = pos % QK_KV_TILE;
    return tile * QK_KV_TILE * dim + (which == 0 ? i * QK_KV_TILE + in : in * dim + i);
}

#define QK_REF_KV(a, fmt, NAME, bits, latent, dims)                                                         \
    size_t qk_kv_##fmt##_tile_bytes(size_t dim);                                                            \
    void qk_kv_##fmt##_store_ref(void *tiles, int which, size_t pos, const float *x, size_t dim);           \
    void qk_kv_##fmt##_load_ref(float *x, const void *tiles, int which, size_t pos, size_t dim);            \
    void qk_kv_##fmt##_copy_ref(void *dst, size_t to, const void *src, size_t from, int which, size_t dim); \
    void qk_kv_##fmt##_attend_ref(const qk_attn *a);                                                        \
    void qk_kv_##fmt##_attend_span_ref(const qk_attn *a, size_t span, float *part, size_t part_stride);

QK_KV_TYPES(QK_REF_KV, )

void qk_kv_merge_ref(float *y, float *part, size_t n, size_t part_stride, size_t dim, const float *sink);

#endif
