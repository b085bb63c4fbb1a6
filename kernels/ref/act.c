/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Activation functions, most of them with the product of a gated feed-forward block. */
#include <math.h>

#include "kernels/ref/ref.h"

static float silu(float x) { return x / (1.0f + expf(-x)); }

/* 0.5 x (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3), written as x / (1 + exp(-2u)): the
 * same function without the cancellation of 1 + tanh for negative x. */
static float gelu(float x) {
    const float two_u = 1.5957691216057308f * x * (1.0f + 0.044715f * x * x);
    return x / (1.0f + expf(-two_u));
}

static float relu(float x) { return x > 0.0f ? x : 0.0f; }

static float relu2(float x) { return relu(x) * relu(x); }

static float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

static float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

#define GATE(name, function)                                                              \
    void qk_##name##_mul_ref(float *gate, const float *up, size_t n) {                    \
        for (size_t i = 0; i < n; i++) gate[i] = function(gate[i]) * (up ? up[i] : 1.0f); \
    }
GATE(silu, silu)
GATE(gelu, gelu)
GATE(relu, relu)
GATE(relu2, relu2)
GATE(sigmoid, sigmoid)
GATE(softplus, softplus)
GATE(exp, expf)
GATE(tanh, tanhf)

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

void qk_softcap_ref(float *y, float cap, size_t n) {
    for (size_t i = 0; i < n; i++) y[i] = cap * tanhf(y[i] / cap);
}
