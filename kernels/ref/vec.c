/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plain vector operations. */
#include <math.h>
#include <string.h>

#include "kernels/ref/ref.h"

void qk_add_ref(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

void qk_mul_ref(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] *= x[i];
}

void qk_scale_ref(float *y, float a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] *= a;
}

float qk_dot_ref(const float *a, const float *b, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++)
        s += (double)a[i] * (double)b[i];
    return (float)s;
}

size_t qk_argmax_ref(const float *x, size_t n)
{
    float best = -INFINITY;
    size_t at = n;
    for (size_t i = 0; i < n; i++)
        if (x[i] > best || (at == n && x[i] == best)) { /* the second: a vector of minus infinities */
            best = x[i];
            at = i;
        }
    return at == n ? 0 : at; /* nothing but NaN */
}

void qk_clamp_ref(float *y, const float *x, size_t n, float low, float high)
{
    for (size_t i = 0; i < n; i++) {
        const float v = x[i] > low ? x[i] : low;
        y[i] = v < high ? v : high;
    }
}

void qk_fill_ref(void *dst, const void *pattern, size_t size, size_t n)
{
    char *p = dst;
    for (size_t i = 0; i < n; i += size)
        memcpy(p + i, pattern, n - i < size ? n - i : size);
}
