/* SPDX-License-Identifier: GPL-3.0-or-later */
/* K and V tiles in few bits: storing, loading and copying one position. */
#include "kernels/kvpack.h"

#define REF_PACKED(a, fmt, NAME, bits, latent, dims)                                                         \
    size_t qk_kv_##fmt##_tile_bytes(size_t dim) { return qk_kvp_tile_bytes(bits, dim); }                     \
    void qk_kv_##fmt##_store_ref(void *tiles, int which, size_t pos, const float *x, size_t dim) {           \
        qk_kvp_store(bits, tiles, which, pos, x, dim);                                                       \
    }                                                                                                        \
    void qk_kv_##fmt##_load_ref(float *x, const void *tiles, int which, size_t pos, size_t dim) {            \
        qk_kvp_load(bits, x, tiles, which, pos, dim);                                                        \
    }                                                                                                        \
    void qk_kv_##fmt##_copy_ref(void *dst, size_t to, const void *src, size_t from, int which, size_t dim) { \
        qk_kvp_copy(bits, dst, to, src, from, which, dim);                                                   \
    }

QK_KV_PACKED(REF_PACKED, )
