/* SPDX-License-Identifier: GPL-3.0-or-later */
/* K and V tiles in few bits (kernels/kvpack.h) for any vector of v_<isa>.h. */
#ifndef QSF_KERNELS_GENERIC_KV_PACKED_H
#define QSF_KERNELS_GENERIC_KV_PACKED_H

#include "kernels/generic/kv.h"
#include "kernels/kvpack.h"

/* n codes of side by side lanes as floats. */
QK_INLINE void kv_unpack(float *dst, const char *w, size_t stride, int bits, size_t e, size_t n) {
    const qk_kvp_at at = qk_kvp_place(bits, e);
    for (size_t i = 0; i < n; i++)
        dst[i] = (float)qk_kvp_number(bits, qk_kvp_get(w + i * sizeof(uint32_t), stride, at));
}

QK_INLINE void kv_packed_open_k(int bits, float *dst, const char *tile, size_t dim) {
    const size_t elems = qk_kvp_elems(bits), stride = qk_kvp_stride(0, dim);
    for (size_t g = 0; g * elems < dim; g++) {
        const char *w = tile + qk_kvp_group(bits, 0, g, 0, dim);
        float *to = dst + g * elems * QK_KV_TILE;
        const size_t left = dim - g * elems;
        if (left >= elems)
            for (size_t e = 0; e < elems; e++) kv_unpack(to + e * QK_KV_TILE, w, stride, bits, e, QK_KV_TILE);
        else
            for (size_t e = 0; e < left; e++) kv_unpack(to + e * QK_KV_TILE, w, stride, bits, e, QK_KV_TILE);
    }
}

QK_INLINE void kv_packed_open_v(int bits, float *dst, const char *tile, size_t dim, size_t pad) {
    const size_t elems = qk_kvp_elems(bits), stride = qk_kvp_stride(1, dim);
    for (size_t p = 0; p < QK_KV_TILE; p++) {
        float *row = dst + p * pad;
        kv_unpack(row, tile + qk_kvp_group(bits, 1, p / elems, 0, dim), stride, bits, p % elems, dim);
        memset(row + dim, 0, (pad - dim) * sizeof *row);
    }
}

static void kv_packed_open_scale(float *dst, const char *scales) {
    for (size_t i = 0; i < QK_KV_TILE; i += V) v_store(dst + i, v_load_half(scales + i * sizeof(uint16_t)));
}

QK_KV_PACKED(KV_INTS, )

#define KV_PACKED(a, fmt, NAME, bits, latent, dims)                                                \
    static void kv_##fmt##_open_k(float *dst, const char *tile, size_t dim) {                      \
        kv_packed_open_k(bits, dst, tile, dim);                                                    \
    }                                                                                              \
    static void kv_##fmt##_open_v(float *dst, const char *tile, size_t dim, size_t pad) {          \
        kv_packed_open_v(bits, dst, tile, dim, pad);                                               \
    }                                                                                              \
    static void kv_##fmt##_open_scale(float *dst, const char *tile, size_t dim) {                  \
        kv_packed_open_scale(dst, tile + qk_kvp_bytes(bits, dim));                                 \
    }                                                                                              \
    static const kv_format kv_##fmt = { .tile_bytes = qk_kv_##fmt##_tile_bytes,                    \
                                        .open_k = kv_##fmt##_open_k,                               \
                                        .open_v = kv_##fmt##_open_v,                               \
                                        .open_scale = kv_##fmt##_open_scale,                       \
                                        .scores = kv_##fmt##_scores,                               \
                                        .rows = kv_##fmt##_rows,                                   \
                                        .code_bits = bits,                                         \
                                        .rotated = 1 };                                            \
    void QK_FN(kv_##fmt##_store)(void *tiles, int which, size_t pos, const float *x, size_t dim) { \
        qk_kvp_store(bits, tiles, which, pos, x, dim);                                             \
    }

QK_KV_PACKED(KV_PACKED, )

#endif
