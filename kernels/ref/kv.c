/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention over cached K and V rows in f32 and f16. */
#include <string.h>

#include "kernels/load.h"
#include "kernels/ref/ref.h"

static float at_f32(const char *row, size_t i)
{
    return qk_load_f32(row + i * sizeof(float));
}

static float at_f16(const char *row, size_t i)
{
    return qk_f16_to_f32(qk_load_u16(row + i * sizeof(uint16_t)));
}

typedef float (*at_fn)(const char *row, size_t i);

static inline void scores(float *s, const float *q, const char *base, size_t stride, size_t n,
                          size_t head_dim, float scale, at_fn at)
{
    for (size_t p = 0; p < n; p++) {
        double sum = 0;
        for (size_t i = 0; i < head_dim; i++)
            sum += (double)q[i] * (double)at(base + p * stride, i);
        s[p] = scale * (float)sum;
    }
}

static inline void mix(float *y, const float *s, const char *base, size_t stride, size_t n, size_t head_dim,
                       at_fn at)
{
    memset(y, 0, head_dim * sizeof *y);
    for (size_t p = 0; p < n; p++)
        for (size_t i = 0; i < head_dim; i++)
            y[i] += s[p] * at(base + p * stride, i);
}

size_t qk_kv_f32_row_bytes(size_t head_dim)
{
    return head_dim * sizeof(float);
}

size_t qk_kv_f16_row_bytes(size_t head_dim)
{
    return head_dim * sizeof(uint16_t);
}

void qk_kv_f32_store_ref(void *dst, const float *x, size_t head_dim)
{
    memcpy(dst, x, head_dim * sizeof *x);
}

void qk_kv_f16_store_ref(void *dst, const float *x, size_t head_dim)
{
    for (size_t i = 0; i < head_dim; i++) {
        const uint16_t h = qk_f32_to_f16(x[i]);
        memcpy((char *)dst + i * sizeof h, &h, sizeof h);
    }
}

void qk_kv_f32_scores_ref(float *s, const float *q, const void *base, size_t stride, size_t n,
                          size_t head_dim, float scale)
{
    scores(s, q, base, stride, n, head_dim, scale, at_f32);
}

void qk_kv_f16_scores_ref(float *s, const float *q, const void *base, size_t stride, size_t n,
                          size_t head_dim, float scale)
{
    scores(s, q, base, stride, n, head_dim, scale, at_f16);
}

void qk_kv_f32_mix_ref(float *y, const float *s, const void *base, size_t stride, size_t n, size_t head_dim)
{
    mix(y, s, base, stride, n, head_dim, at_f32);
}

void qk_kv_f16_mix_ref(float *y, const float *s, const void *base, size_t stride, size_t n, size_t head_dim)
{
    mix(y, s, base, stride, n, head_dim, at_f16);
}
