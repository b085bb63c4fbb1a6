/* SPDX-License-Identifier: GPL-3.0-or-later */
/* K and V tiles in f32, f16 and q8: storing and loading one position. */
#include "kernels/ref/kv.h"

#include <math.h>
#include <string.h>

#include "kernels/load.h"
#include "kernels/ref/ref.h"

/* --- f32 --- */

size_t qk_kv_f32_tile_bytes(size_t dim) { return QK_KV_TILE * dim * sizeof(float); }

void qk_kv_f32_store_ref(void *tiles, int which, size_t pos, const float *x, size_t dim) {
    for (size_t i = 0; i < dim; i++)
        memcpy((char *)tiles + sizeof *x * qk_kv_place(which, pos, i, dim), &x[i], sizeof *x);
}

void qk_kv_f32_load_ref(float *x, const void *tiles, int which, size_t pos, size_t dim) {
    for (size_t i = 0; i < dim; i++)
        memcpy(&x[i], (const char *)tiles + sizeof *x * qk_kv_place(which, pos, i, dim), sizeof *x);
}

/* --- f16 --- */

size_t qk_kv_f16_tile_bytes(size_t dim) { return QK_KV_TILE * dim * sizeof(uint16_t); }

void qk_kv_f16_store_ref(void *tiles, int which, size_t pos, const float *x, size_t dim) {
    for (size_t i = 0; i < dim; i++) {
        const uint16_t h = qk_f32_to_f16(x[i]);
        memcpy((char *)tiles + sizeof h * qk_kv_place(which, pos, i, dim), &h, sizeof h);
    }
}

void qk_kv_f16_load_ref(float *x, const void *tiles, int which, size_t pos, size_t dim) {
    for (size_t i = 0; i < dim; i++)
        x[i] = qk_f16_to_f32(qk_load_u16((const char *)tiles + 2 * qk_kv_place(which, pos, i, dim)));
}

/* --- q8: a tile is 16 * dim bytes as above, then 16 scales --- */

size_t qk_kv_q8_tile_bytes(size_t dim) { return QK_KV_TILE * dim + QK_KV_TILE * sizeof(uint16_t); }

void qk_kv_q8_store_ref(void *tiles, int which, size_t pos, const float *x, size_t dim) {
    char *tile = (char *)tiles + pos / QK_KV_TILE * qk_kv_q8_tile_bytes(dim);
    const size_t in = pos % QK_KV_TILE;
    uint32_t max = 0;
    for (size_t i = 0; i < dim; i++) {
        const uint32_t bits = qk_bits_of(x[i]) & 0x7fffffffu; /* ordered by magnitude, NaN last */
        max = bits > max ? bits : max;
    }
    const uint16_t h = qk_kv_q8_scale(qk_float_of(max));
    const float d = qk_f16_to_f32(h), inv = d > 0 ? 1.0f / d : 0;
    for (size_t i = 0; i < dim; i++) {
        const float q = fminf(127.0f, fmaxf(-127.0f, nearbyintf(x[i] * inv)));
        tile[qk_kv_place(which, in, i, dim)] = (char)(int8_t)q;
    }
    memcpy(tile + QK_KV_TILE * dim + in * sizeof h, &h, sizeof h);
}

void qk_kv_q8_load_ref(float *x, const void *tiles, int which, size_t pos, size_t dim) {
    const char *tile = (const char *)tiles + pos / QK_KV_TILE * qk_kv_q8_tile_bytes(dim);
    const size_t in = pos % QK_KV_TILE;
    const float d = qk_f16_to_f32(qk_load_u16(tile + QK_KV_TILE * dim + in * sizeof(uint16_t)));
    for (size_t i = 0; i < dim; i++) x[i] = d * (float)(int8_t)tile[qk_kv_place(which, in, i, dim)];
}
