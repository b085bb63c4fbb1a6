/* SPDX-License-Identifier: GPL-3.0-or-later */
/* K and V tiles of f32 and f16 for any vector of v_<isa>.h, and the functions of all types for the table. */
#ifndef QSF_KERNELS_GENERIC_KV_FORMATS_H
#define QSF_KERNELS_GENERIC_KV_FORMATS_H

#include "kernels/generic/kv.h"
#include "kernels/generic/kv_packed.h"
#include "kernels/ref/kv.h"

/* --- f32 --- */

static void kv_f32_open_k(float *dst, const char *tile, size_t from, size_t n) {
    memcpy(dst, tile + QK_KV_TILE * from * sizeof *dst, QK_KV_TILE * n * sizeof *dst);
}

static void kv_f32_open_v(float *dst, const char *tile, size_t dim, size_t pad) {
    for (size_t p = 0; p < QK_KV_TILE; p++) {
        memcpy(dst + p * pad, tile + p * dim * sizeof *dst, dim * sizeof *dst);
        memset(dst + p * pad + dim, 0, (pad - dim) * sizeof *dst);
    }
}

static const kv_format kv_f32 = {
    4, qk_kv_f32_tile_bytes, kv_score_4, kv_mix_4, kv_f32_open_k, kv_f32_open_v, NULL, NULL, NULL, 0, 0
};

/* --- f16 --- */

static void kv_f16_open_k(float *dst, const char *tile, size_t from, size_t n) {
    const char *first = tile + QK_KV_TILE * from * sizeof(uint16_t);
    for (size_t i = 0; i < QK_KV_TILE * n; i += V)
        v_store(dst + i, v_load_half(first + i * sizeof(uint16_t)));
}

static void kv_f16_open_v(float *dst, const char *tile, size_t dim, size_t pad) {
    const size_t whole = dim / V * V;
    for (size_t p = 0; p < QK_KV_TILE; p++) {
        const char *row = tile + p * dim * sizeof(uint16_t);
        for (size_t i = 0; i < whole; i += V)
            v_store(dst + p * pad + i, v_load_half(row + i * sizeof(uint16_t)));
        for (size_t i = whole; i < pad; i += V)
            v_store(dst + p * pad + i,
                    i < dim ? v_load_half_some(row + i * sizeof(uint16_t), dim - i) : v_set(0));
    }
}

static const kv_format kv_f16 = {
    2, qk_kv_f16_tile_bytes, kv_score_2, kv_mix_2, kv_f16_open_k, kv_f16_open_v, NULL, NULL, NULL, 0, 0
};

void QK_FN(kv_f16_store)(void *tiles, int which, size_t pos, const float *x, size_t dim) {
    const size_t step = which == 0 ? QK_KV_TILE : 1;
    char *dst = (char *)tiles + sizeof(uint16_t) * qk_kv_place(which, pos, 0, dim);
    for (size_t i = 0; i < dim; i += V) {
        uint16_t h[V];
        const size_t n = dim - i < V ? dim - i : V;
        v_store_half(h, n == V ? v_load(x + i) : v_load_some(x + i, n));
        for (size_t j = 0; j < n; j++) memcpy(dst + (i + j) * step * sizeof h[0], &h[j], sizeof h[0]);
    }
}

/* --- the functions for the table --- */

#define KV_FORMAT_OF(x, fmt, NAME, bits, latent, dims) [QK_KV_##NAME] = &kv_##fmt,
static const kv_format *const kv_format_of[QK_KV_N] = { QK_KV_TYPES(KV_FORMAT_OF, ) };

#define KV_OPS(x, fmt, NAME, bits, latent, dims)                                                         \
    void QK_FN(kv_##fmt##_attend)(const qk_attn *a) { kv_attend(a, &kv_##fmt); }                         \
    void QK_FN(kv_##fmt##_attend_span)(const qk_attn *a, size_t span, float *part, size_t part_stride) { \
        kv_attend_span(a, &kv_##fmt, span, part, part_stride);                                           \
    }                                                                                                    \
    void QK_FN(kv_##fmt##_merge)(float *y, float *part, size_t n, size_t part_stride, size_t dim,        \
                                 const float *sink) {                                                    \
        kv_merge(y, part, n, part_stride, dim, sink, kv_##fmt.rotated);                                  \
    }

QK_KV_TYPES(KV_OPS, )

#endif
