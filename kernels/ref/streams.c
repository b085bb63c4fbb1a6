/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Residual streams that predict each other. */
#include "kernels/ref/ref.h"

void qk_mix_streams_ref(float *y, const float *coef, size_t n, size_t stride, size_t width) {
    for (size_t e = 0; e < width; e++) {
        float in[QK_MAX_STREAMS];
        for (size_t j = 0; j < n; j++) in[j] = y[j * stride + e];
        for (size_t i = 0; i < n; i++) {
            float sum = in[i];
            for (size_t j = 0; j < n; j++) sum += coef[i * n + j] * in[j];
            y[i * stride + e] = sum;
        }
    }
}

void qk_correct_streams_ref(float *y, const float *x, const float *coef, size_t n, size_t stride,
                            size_t width) {
    for (size_t e = 0; e < width; e++) {
        const float missed = x[e] - y[e];
        for (size_t i = 0; i < n; i++) y[i * stride + e] += missed * (1.0f + coef[i]);
    }
}
