/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plain vector operations. */
#include <math.h>

#include "kernels/ref/ref.h"

void qk_add_ref(float *y, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] += x[i];
}

void qk_mul_ref(float *y, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] *= x[i];
}

void qk_scale_ref(float *y, float a, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] *= a;
}

size_t qk_argmax_ref(const float *x, size_t n) {
    float best = -INFINITY;
    size_t at = n;
    for (size_t i = 0; i < n; i++)
        if (x[i] > best || (at == n && x[i] == best)) { /* second case: only minus infinities */
            best = x[i];
            at = i;
        }
    return at == n ? 0 : at; /* all elements are NaN */
}

void qk_clamp_ref(float *y, const float *x, size_t n, float low, float high) {
    for (size_t i = 0; i < n; i++) {
        const float v = x[i] > low ? x[i] : low;
        y[i] = v < high ? v : high;
    }
}

float qk_scan_ref(float *s, const float *old, const float *b, const float *c, size_t n, float decay,
                  float x) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        s[i] = old[i] * decay + b[i] * x;
        sum += (double)s[i] * (double)c[i];
    }
    return (float)sum;
}
