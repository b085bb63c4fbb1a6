/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention over cached K and V rows for any vector of v_<isa>.h. */
#ifndef QSF_KERNELS_X86_OPS_KV_H
#define QSF_KERNELS_X86_OPS_KV_H

/* How a row is read: elem bytes per element, a whole vector and a part of one. */
typedef struct row_type {
    size_t elem;
    vf (*load)(const void *p);
    vf (*load_some)(const void *p, size_t n);
} row_type;

QK_INLINE vf load_f32(const void *p)
{
    return v_load(p);
}

QK_INLINE vf load_f32_some(const void *p, size_t n)
{
    return v_load_some(p, n);
}

static const row_type rows_f32 = { sizeof(float), load_f32, load_f32_some };
static const row_type rows_f16 = { sizeof(uint16_t), v_load_half, v_load_half_some };

/* Scores of nr rows; each has its own accumulator, so nr does not matter to the result. */
QK_INLINE void score_rows(float *s, const float *q, const char *base, size_t stride, size_t dim, float scale,
                          int nr, row_type t)
{
    vf acc[4];
    size_t i = 0;
    for (int r = 0; r < nr; r++)
        acc[r] = v_set(0);
    for (; i + V <= dim; i += V)
        for (int r = 0; r < nr; r++)
            acc[r] = v_fma(v_load(q + i), t.load(base + (size_t)r * stride + i * t.elem), acc[r]);
    if (i < dim)
        for (int r = 0; r < nr; r++)
            acc[r] = v_fma(v_load_some(q + i, dim - i),
                           t.load_some(base + (size_t)r * stride + i * t.elem, dim - i), acc[r]);
    for (int r = 0; r < nr; r++)
        s[r] = scale * v_sum(acc[r]);
}

QK_INLINE void scores(float *s, const float *q, const char *base, size_t stride, size_t n, size_t dim,
                      float scale, row_type t)
{
    size_t p = 0;
    for (; p + 4 <= n; p += 4)
        score_rows(s + p, q, base + p * stride, stride, dim, scale, 4, t);
    for (; p < n; p++)
        score_rows(s + p, q, base + p * stride, stride, dim, scale, 1, t);
}

/* nv vectors of y, from element i on. */
QK_INLINE void mix_part(float *y, const float *s, const char *base, size_t stride, size_t n, size_t i, int nv,
                        row_type t)
{
    vf acc[8];
    for (int v = 0; v < nv; v++)
        acc[v] = v_set(0);
    for (size_t p = 0; p < n; p++)
        for (int v = 0; v < nv; v++)
            acc[v] = v_fma(v_set(s[p]), t.load(base + p * stride + (i + (size_t)v * V) * t.elem), acc[v]);
    for (int v = 0; v < nv; v++)
        v_store(y + i + v * V, acc[v]);
}

QK_INLINE void mix(float *y, const float *s, const char *base, size_t stride, size_t n, size_t dim,
                   row_type t)
{
    size_t i = 0;
    for (; i + 8 * V <= dim; i += 8 * V)
        mix_part(y, s, base, stride, n, i, 8, t);
    for (; i + 4 * V <= dim; i += 4 * V)
        mix_part(y, s, base, stride, n, i, 4, t);
    for (; i + V <= dim; i += V)
        mix_part(y, s, base, stride, n, i, 1, t);
    if (i < dim) {
        vf acc = v_set(0);
        for (size_t p = 0; p < n; p++)
            acc = v_fma(v_set(s[p]), t.load_some(base + p * stride + i * t.elem, dim - i), acc);
        v_store_some(y + i, dim - i, acc);
    }
}

void QK_FN(kv_f16_store)(void *dst, const float *x, size_t head_dim)
{
    char *p = dst;
    size_t i = 0;
    for (; i + V <= head_dim; i += V)
        v_store_half(p + i * sizeof(uint16_t), v_load(x + i));
    if (i < head_dim)
        v_store_half_some(p + i * sizeof(uint16_t), head_dim - i, v_load_some(x + i, head_dim - i));
}

void QK_FN(kv_f32_scores)(float *s, const float *q, const void *base, size_t stride, size_t n,
                          size_t head_dim, float scale)
{
    scores(s, q, base, stride, n, head_dim, scale, rows_f32);
}

void QK_FN(kv_f16_scores)(float *s, const float *q, const void *base, size_t stride, size_t n,
                          size_t head_dim, float scale)
{
    scores(s, q, base, stride, n, head_dim, scale, rows_f16);
}

void QK_FN(kv_f32_mix)(float *y, const float *s, const void *base, size_t stride, size_t n, size_t head_dim)
{
    mix(y, s, base, stride, n, head_dim, rows_f32);
}

void QK_FN(kv_f16_mix)(float *y, const float *s, const void *base, size_t stride, size_t n, size_t head_dim)
{
    mix(y, s, base, stride, n, head_dim, rows_f16);
}

#endif
