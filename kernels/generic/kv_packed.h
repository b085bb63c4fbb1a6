/* SPDX-License-Identifier: GPL-3.0-or-later */
/* K and V tiles in few bits (kernels/kvpack.h) for any vector of v_<isa>.h. */
#ifndef QSF_KERNELS_GENERIC_KV_PACKED_H
#define QSF_KERNELS_GENERIC_KV_PACKED_H

#include "kernels/generic/kv.h"
#include "kernels/kvpack.h"

/* K of the packed type that caches whose V is K can have, n a multiple of 4. Attention reads
 * the others as they are. */
static void kv_q8_open_k(float *dst, const char *tile, size_t from, size_t n) {
    for (size_t d = 0; d < n; d += 4)
        for (size_t i = 0; i < QK_KV_TILE; i += L) {
            const li x = l_xor(l_load(tile + qk_kvp_group(8, 0, (from + d) / 4, i, 0)), l_bytes(128));
            QK_UNROLL for (int e = 0; e < 4; e++)
                l_storef(dst + (d + (size_t)e) * QK_KV_TILE + i, l_float(l_sar(l_shl(x, 24 - 8 * e), 24)));
        }
}

static void kv_packed_open_scale(float *dst, const char *scales) {
    for (size_t i = 0; i < QK_KV_TILE; i += V) v_store(dst + i, v_load_half(scales + i * sizeof(uint16_t)));
}

QK_KV_PACKED(KV_INTS, )

#define KV_OPEN_0(fmt) NULL
#define KV_OPEN_1(fmt) kv_##fmt##_open_k
#define KV_PACKED(a, fmt, NAME, bits, latent, dims)                                                \
    static void kv_##fmt##_open_scale(float *dst, const char *tile, size_t dim) {                  \
        kv_packed_open_scale(dst, tile + qk_kvp_bytes(bits, dim));                                 \
    }                                                                                              \
    static const kv_format kv_##fmt = { .tile_bytes = qk_kv_##fmt##_tile_bytes,                    \
                                        .open_k = KV_OPEN_##latent(fmt),                           \
                                        .open_scale = kv_##fmt##_open_scale,                       \
                                        .scores = kv_##fmt##_scores,                               \
                                        .rows = QK_FN(kv_##fmt##_rows),                            \
                                        .code_bits = bits,                                         \
                                        .rotated = 1 };                                            \
    void QK_FN(kv_##fmt##_store)(void *tiles, int which, size_t pos, const float *x, size_t dim) { \
        qk_kvp_store(bits, tiles, which, pos, x, dim);                                             \
    }

QK_KV_PACKED(KV_PACKED, )

#endif
