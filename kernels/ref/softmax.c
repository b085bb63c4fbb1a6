/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Softmax with a temperature; the maximum is subtracted. */
#include <math.h>

#include "kernels/ref/ref.h"

/* With z = (x - max) / t and S the sum of exp(z), the entropy is log S - sum(exp(z) z) / S, which needs no
 * logarithm per element. Where the weight is 0, z may be an infinity and must not be multiplied. */
float qk_softmax_t_ref(float *y, const float *x, size_t n, float temperature) {
    const float inv = 1.0f / temperature;
    float max = x[0];
    double sum = 0, weighted = 0;
    for (size_t i = 1; i < n; i++) max = x[i] > max ? x[i] : max;
    for (size_t i = 0; i < n; i++) {
        const float z = (x[i] - max) * inv;
        y[i] = z < QK_SOFTMAX_LOWEST ? 0.0f : expf(z);
        sum += (double)y[i];
        if (y[i] != 0.0f) weighted += (double)(y[i] * z);
    }
    const float r = (float)(1.0 / sum);
    for (size_t i = 0; i < n; i++) y[i] *= r;
    return (float)(log(sum) - weighted / sum);
}
