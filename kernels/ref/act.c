/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Gated activations of the feed-forward block. */
#include <math.h>

#include "kernels/ref/ref.h"

static float silu(float x) { return x / (1.0f + expf(-x)); }

/* 0.5 x (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3), written as x / (1 + exp(-2u)): the
 * same function without the cancellation of 1 + tanh for negative x. */
static float gelu(float x) {
    const float two_u = 1.5957691216057308f * x * (1.0f + 0.044715f * x * x);
    return x / (1.0f + expf(-two_u));
}

void qk_silu_mul_ref(float *gate, const float *up, size_t n) {
    for (size_t i = 0; i < n; i++) gate[i] = silu(gate[i]) * (up ? up[i] : 1.0f);
}

void qk_gelu_mul_ref(float *gate, const float *up, size_t n) {
    for (size_t i = 0; i < n; i++) gate[i] = gelu(gate[i]) * (up ? up[i] : 1.0f);
}

void qk_relu2_mul_ref(float *gate, const float *up, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const float r = gate[i] > 0.0f ? gate[i] : 0.0f;
        gate[i] = r * r * (up ? up[i] : 1.0f);
    }
}
