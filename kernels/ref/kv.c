/* SPDX-License-Identifier: GPL-3.0-or-later */
/* K and V tiles in f32 and f16: storing, loading and copying one position. */
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

void qk_kv_f32_copy_ref(void *dst, size_t to, const void *src, size_t from, int which, size_t dim) {
    for (size_t i = 0; i < dim; i++)
        memcpy((char *)dst + sizeof(float) * qk_kv_place(which, to, i, dim),
               (const char *)src + sizeof(float) * qk_kv_place(which, from, i, dim), sizeof(float));
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

void qk_kv_f16_copy_ref(void *dst, size_t to, const void *src, size_t from, int which, size_t dim) {
    for (size_t i = 0; i < dim; i++)
        memcpy((char *)dst + sizeof(uint16_t) * qk_kv_place(which, to, i, dim),
               (const char *)src + sizeof(uint16_t) * qk_kv_place(which, from, i, dim), sizeof(uint16_t));
}
