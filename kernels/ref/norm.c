/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Root-mean-square, layer and L2 norm, and what is above the mean; sums in double. */
#include <math.h>

#include "kernels/ref/ref.h"

void qk_rms_norm_ref(float *y, const float *x, const float *w, size_t n, float eps) {
    double s = 0;
    for (size_t i = 0; i < n; i++) s += (double)x[i] * (double)x[i];
    const float r = (float)(1.0 / sqrt(s / (double)n + (double)eps));
    for (size_t i = 0; i < n; i++) y[i] = x[i] * r * w[i];
}

void qk_layer_norm_ref(float *y, const float *x, const float *w, const float *b, size_t n, float eps) {
    double mean = 0, var = 0;
    for (size_t i = 0; i < n; i++) mean += (double)x[i];
    mean /= (double)n;
    for (size_t i = 0; i < n; i++) var += ((double)x[i] - mean) * ((double)x[i] - mean);
    const double r = 1.0 / sqrt(var / (double)n + (double)eps);
    for (size_t i = 0; i < n; i++) y[i] = (float)(((double)x[i] - mean) * r) * w[i] + (b ? b[i] : 0.0f);
}

void qk_l2_norm_ref(float *y, const float *x, size_t n, float eps) {
    double s = 0;
    for (size_t i = 0; i < n; i++) s += (double)x[i] * (double)x[i];
    const float r = (float)(1.0 / fmax(sqrt(s), (double)eps));
    for (size_t i = 0; i < n; i++) y[i] = x[i] * r;
}

void qk_keep_above_ref(float *y, size_t n, float deviations) {
    double mean = 0, var = 0;
    for (size_t i = 0; i < n; i++) mean += (double)y[i];
    mean /= (double)n;
    for (size_t i = 0; i < n; i++) var += ((double)y[i] - mean) * ((double)y[i] - mean);
    const float cut = (float)(mean + (double)deviations * sqrt(var / (double)(n - 1)));
    for (size_t i = 0; i < n; i++) y[i] = y[i] > cut ? y[i] - cut : 0.0f;
}
