/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Weighted sums of packed tiles of V with integers (kv_ints.h), for any vector of lanes_<isa>.h. A file of
 * its own: it is half of attention for the compiler. */
#ifndef QSF_KERNELS_GENERIC_KV_ROWS_H
#define QSF_KERNELS_GENERIC_KV_ROWS_H

#include "kernels/generic/kv_codes.h"

/* Adds a plane of weights times nv vectors of dimensions, starting at d, of all tiles. some, if not 0: only
 * this many dimensions, in one vector. */
QK_INLINE void kv_mix_plane(int bits, const qk_kv_rows *of, const int8_t *x, const char *ahead, size_t d,
                            int nq, int nv, size_t some, li acc[KV_GROUP][4]) {
    const size_t elems = qk_kvp_elems(bits), words = qk_kvp_words(bits), stride = qk_kvp_stride(1, of->dim);
    li sum[KV_GROUP][4]; /* in registers */
    uint32_t copy[3][L] = { { 0 } };
    const size_t apart = some ? sizeof copy[0] : stride;
    QK_UNROLL for (int r = 0; r < nq; r++) QK_UNROLL for (int v = 0; v < nv; v++) sum[r][v] = acc[r][v];
    for (size_t t = 0; t < of->n; t++) {
        const char *p = of->tile[t] + d * sizeof(uint32_t);
        for (size_t g = 0; g < QK_KV_TILE / elems; g++, p += words * stride, x += elems) {
            kv_ahead_group(ahead ? ahead + t * qk_kvp_tile_bytes(bits, of->dim) + g * words * stride : ahead,
                           words, stride, nv, sizeof(li));
            for (size_t i = 0; some && i < words; i++)
                memcpy(copy[i], p + i * stride, some * sizeof(uint32_t));
            const char *from = some ? (const char *)copy : p;
            QK_UNROLL for (int j = 0; j < (int)elems / 4; j++) {
                li codes[4];
                QK_UNROLL for (int v = 0; v < nv; v++)
                    codes[v] = kv_codes(bits, from + (size_t)v * L * sizeof(uint32_t), apart, j);
                QK_UNROLL for (int r = 0; r < nq; r++) {
                    const li y = l_dup(x + 4 * (size_t)j + (size_t)r * QK_KV_BLOCK);
                    QK_UNROLL for (int v = 0; v < nv; v++) sum[r][v] = kv_dot(bits, sum[r][v], codes[v], y);
                }
            }
        }
    }
    QK_UNROLL for (int r = 0; r < nq; r++) QK_UNROLL for (int v = 0; v < nv; v++) acc[r][v] = sum[r][v];
}

QK_INLINE void kv_mix_part(int bits, const qk_kv_rows *x, size_t d, int nq, int nv, size_t some) {
    const char *ahead = x->ahead ? x->ahead + d * sizeof(uint32_t) : NULL;
    li sum[KV_GROUP][4];
    kv_no_sums(sum, nq, nv);
    QK_NO_UNROLL for (int p = 0; p < 2; p++) {
        kv_next_plane(sum, nq, nv);
        kv_mix_plane(bits, x, p ? x->low : x->high, p ? NULL : ahead, d, nq, nv, some, sum);
    }
    QK_UNROLL for (int r = 0; r < nq; r++) {
        const li bias = l_set(kv_bias(bits, x->sum[r]));
        const lf scale = l_setf(x->scale[r]);
        float *acc = x->acc + (size_t)r * x->stride + d;
        if (x->scale[r] == 0.0f) continue;       /* nothing, or all of it not seen */
        QK_UNROLL for (int k = 0; k < nv; k++) { /* at most 2^8 * 2^13 * QK_KV_BLOCK */
            const lf add = l_mulf(l_float(kv_unbias(bits, sum[r][k], bias)), scale);
            l_storef(acc + k * L, l_addf(l_loadf(acc + k * L), add));
        }
    }
}

QK_INLINE void kv_mix_dims(int bits, const qk_kv_rows *x, int nq) {
    const size_t wide = (size_t)kv_wide(nq) * L;
    size_t d = 0;
    kv_ahead_scales(bits, x->dim, x->ahead, x->n);
    for (; d + wide <= x->dim; d += wide) kv_mix_part(bits, x, d, nq, kv_wide(nq), 0);
    for (; d < x->dim; d += L) kv_mix_part(bits, x, d, nq, 1, d + L <= x->dim ? 0 : x->dim - d);
}

#define KV_ROWS_OF_8(nq) kv_mix_dims(8, x, nq)
#define KV_ROWS_OF_6(nq) kv_mix_dims(6, x, nq)
#define KV_ROWS_OF_4(nq) kv_mix_dims(4, x, nq)
#define KV_ROWS_OF_2(nq) kv_mix_dims(2, x, nq)
#define KV_ROWS(a, fmt, NAME, bits, latent, dims) \
    void QK_FN(kv_##fmt##_rows)(const qk_kv_rows *x, int nq) { KV_INTS_BY(nq, KV_ROWS_OF_##bits) }

QK_KV_PACKED(KV_ROWS, )

#endif
