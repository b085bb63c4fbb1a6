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

void qk_sigmoid_mul_ref(float *gate, const float *up, size_t n) {
    for (size_t i = 0; i < n; i++) gate[i] = 1.0f / (1.0f + expf(-gate[i])) * (up ? up[i] : 1.0f);
}

/* x, at most `most`; a NaN stays. */
static float at_most(float x, float most) { return x > most ? most : x; }

void qk_swiglu_mul_ref(float *gate, const float *up, size_t n, const qk_swiglu *s) {
    for (size_t i = 0; i < n; i++) {
        const float g = at_most(gate[i], s->gate_most);
        gate[i] = at_most(g / (1.0f + expf(-s->alpha * g)), s->most);
        if (up) gate[i] *= -at_most(-at_most(up[i], s->up_most), s->up_most) + s->up_plus;
    }
}

void qk_xielu_mul_ref(float *gate, const float *up, size_t n, const qk_xielu *s) {
    for (size_t i = 0; i < n; i++) {
        const float x = gate[i];
        gate[i] = s->beta * x;
        if (x > 0.0f) gate[i] += s->positive * x * x;
        if (x < 0.0f) gate[i] += s->negative * (expm1f(at_most(x, s->eps)) - x);
        if (up) gate[i] *= up[i];
    }
}
