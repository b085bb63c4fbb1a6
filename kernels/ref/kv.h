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

/* The smallest half that is at least x >= 0, so that nothing is clipped where halves are coarse. */
static inline uint16_t qk_half_above(float x) {
    const uint16_t h = qk_f32_to_f16(x);
    return (uint16_t)(qk_f16_to_f32(h) < x ? h + 1 : h);
}

/* 4-bit encoding of numbers from low to high, with largest magnitude max (NaN if one of them is NaN): q =
 * clamp(round((x - from) * inv), least, most) + add. */
typedef struct qk_kv4 {
    float from, inv, least, most;
    int add;
} qk_kv4;

static inline qk_kv4 qk_kv4_of(float low, float high, float max, uint16_t *scale, uint16_t *min) {
    qk_kv4 r = { 0, 0, -7, 7, 8 };
    if (min) {
        uint16_t h = qk_f32_to_f16(low + 0.0f); /* +0, not -0 */
        if (qk_f16_to_f32(h) > low)             /* the next half below */
            h = (uint16_t)(h == 0 ? 0x8001 : h & 0x8000 ? h + 1 : h - 1);
        *min = h;
        r = (qk_kv4){ qk_f16_to_f32(h), 0, 0, 15, 0 };
    }
    *scale = max != max ? 0x7e00 : qk_half_above(min ? (high - r.from + 0.0f) / 15.0f : max / 7.0f);
    const float d = qk_f16_to_f32(*scale);
    r.inv = d > 0 ? 1.0f / d : 0;
    return r;
}

void qk_kv_quantize4_ref(uint8_t *q, uint16_t *scale, uint16_t *min, const float *x, size_t n);
void qk_kv_dequantize4_ref(float *x, const uint8_t *q, uint16_t scale, const uint16_t *min, size_t n);

#define QK_REF_KV(a, fmt, NAME, bits, latent, dims)                                               \
    size_t qk_kv_##fmt##_tile_bytes(size_t dim);                                                  \
    void qk_kv_##fmt##_store_ref(void *tiles, int which, size_t pos, const float *x, size_t dim); \
    void qk_kv_##fmt##_load_ref(float *x, const void *tiles, int which, size_t pos, size_t dim);  \
    void qk_kv_##fmt##_attend_ref(const qk_attn *a);                                              \
    void qk_kv_##fmt##_attend_span_ref(const qk_attn *a, size_t span, float *part, size_t part_stride);

QK_KV_TYPES(QK_REF_KV, )

void qk_kv_merge_ref(float *y, float *part, size_t n, size_t part_stride, size_t dim, const float *sink);

#endif
