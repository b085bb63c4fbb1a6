/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Softmax with the maximum subtracted. */
#include <math.h>

#include "kernels/ref/ref.h"

void qk_softmax_ref(float *x, size_t n)
{
    float max = x[0];
    double sum = 0;
    for (size_t i = 1; i < n; i++)
        max = x[i] > max ? x[i] : max;
    for (size_t i = 0; i < n; i++) {
        x[i] = expf(x[i] - max);
        sum += (double)x[i];
    }
    const float r = (float)(1.0 / sum);
    for (size_t i = 0; i < n; i++)
        x[i] *= r;
}
