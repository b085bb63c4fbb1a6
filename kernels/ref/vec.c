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

void qk_lerp_ref(float *y, const float *x, const float *z, const float *w, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = x[i] + (z[i] - x[i]) * w[i];
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
