/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plain vector operations for any vector of v_<isa>.h. */
#ifndef QSF_KERNELS_GENERIC_OPS_VEC_H
#define QSF_KERNELS_GENERIC_OPS_VEC_H

void QK_FN(add)(float *y, const float *x, size_t n)
{
    size_t i = 0;
    for (; i + V <= n; i += V)
        v_store(y + i, v_add(v_load(y + i), v_load(x + i)));
    if (i < n)
        v_store_some(y + i, n - i, v_add(v_load_some(y + i, n - i), v_load_some(x + i, n - i)));
}

void QK_FN(mul)(float *y, const float *x, size_t n)
{
    size_t i = 0;
    for (; i + V <= n; i += V)
        v_store(y + i, v_mul(v_load(y + i), v_load(x + i)));
    if (i < n)
        v_store_some(y + i, n - i, v_mul(v_load_some(y + i, n - i), v_load_some(x + i, n - i)));
}

void QK_FN(scale)(float *y, float a, size_t n)
{
    const vf va = v_set(a);
    size_t i = 0;
    for (; i + V <= n; i += V)
        v_store(y + i, v_mul(v_load(y + i), va));
    if (i < n)
        v_store_some(y + i, n - i, v_mul(v_load_some(y + i, n - i), va));
}

float QK_FN(dot)(const float *a, const float *b, size_t n)
{
    vf s[4] = { v_set(0), v_set(0), v_set(0), v_set(0) }; /* four chains hide the latency of FMA */
    size_t i = 0;
    for (; i + 4 * V <= n; i += 4 * V)
        for (size_t j = 0; j < 4; j++)
            s[j] = v_fma(v_load(a + i + j * V), v_load(b + i + j * V), s[j]);
    for (; i + V <= n; i += V)
        s[0] = v_fma(v_load(a + i), v_load(b + i), s[0]);
    if (i < n)
        s[0] = v_fma(v_load_some(a + i, n - i), v_load_some(b + i, n - i), s[0]);
    return v_sum(v_add(v_add(s[0], s[1]), v_add(s[2], s[3])));
}

/* The largest value first, then the first place it stands at. */
size_t QK_FN(argmax)(const float *x, size_t n)
{
    vf best = v_set(-INFINITY);
    size_t i = 0;
    for (; i + V <= n; i += V)
        best = v_max(v_load(x + i), best); /* in this order a NaN leaves best as it is */
    if (i < n)
        best = v_max(v_load_some_or(x + i, n - i, best), best);
    best = v_set(v_largest(best));
    for (i = 0; i + V <= n; i += V) {
        const unsigned at = v_equal(v_load(x + i), best);
        if (at)
            return i + (size_t)__builtin_ctz(at);
    }
    for (; i < n; i++)
        if (v_equal(v_set(x[i]), best))
            return i;
    return 0; /* nothing but NaN */
}

void QK_FN(f16_to_f32)(float *y, const uint16_t *x, size_t n)
{
    size_t i = 0;
    for (; i + V <= n; i += V)
        v_store(y + i, v_load_half(x + i));
    if (i < n)
        v_store_some(y + i, n - i, v_load_half_some(x + i, n - i));
}

void QK_FN(f32_to_f16)(uint16_t *y, const float *x, size_t n)
{
    size_t i = 0;
    for (; i + V <= n; i += V)
        v_store_half(y + i, v_load(x + i));
    if (i < n)
        v_store_half_some(y + i, n - i, v_load_some(x + i, n - i));
}

void QK_FN(bf16_to_f32)(float *y, const uint16_t *x, size_t n)
{
    size_t i = 0;
    for (; i + V <= n; i += V)
        v_store(y + i, v_load_bf16(x + i));
    if (i < n)
        v_store_some(y + i, n - i, v_load_bf16_some(x + i, n - i));
}

void QK_FN(clamp)(float *y, const float *x, size_t n, float low, float high)
{
    const vf lo = v_set(low), hi = v_set(high);
    size_t i = 0;
    for (; i + V <= n; i += V)
        v_store(y + i, v_min(v_max(v_load(x + i), lo), hi));
    if (i < n)
        v_store_some(y + i, n - i, v_min(v_max(v_load_some(x + i, n - i), lo), hi));
}

/* A vector is a multiple of every size. */
void QK_FN(fill)(void *dst, const void *pattern, size_t size, size_t n)
{
    _Alignas(64) char block[V * sizeof(float)];
    char *p = dst;
    size_t i = 0;
    for (; i < sizeof block; i += size)
        memcpy(block + i, pattern, size);
    const vf v = v_load((const float *)(const void *)block);
    for (i = 0; i + sizeof block <= n; i += sizeof block)
        v_store((float *)(void *)(p + i), v);
    memcpy(p + i, block, n - i);
}

#endif
