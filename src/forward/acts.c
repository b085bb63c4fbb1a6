/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Activation functions. The common ones are kernels; the others are rare and written in plain C. */
#include <math.h>

#include "src/forward/state.h"

static float relu(float x) { return x > 0.0f ? x : 0.0f; }
static float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
static float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

static void apply(float *y, const float *up, size_t n, float (*act)(float)) {
    for (size_t i = 0; i < n; i++) y[i] = up != NULL ? act(y[i]) * up[i] : act(y[i]);
}

static void relu_mul(float *y, const float *up, size_t n) { apply(y, up, n, relu); }
static void sigmoid_mul(float *y, const float *up, size_t n) { apply(y, up, n, sigmoid); }
static void softplus_mul(float *y, const float *up, size_t n) { apply(y, up, n, softplus); }
static void exp_mul(float *y, const float *up, size_t n) { apply(y, up, n, expf); }
static void tanh_mul(float *y, const float *up, size_t n) { apply(y, up, n, tanhf); }

/* gpt-oss: the gate is at most 7, the other input within +-7 and raised by 1. */
static void swiglu_oai_mul(float *y, const float *up, size_t n) {
    const float limit = 7.0f, alpha = 1.702f;
    for (size_t i = 0; i < n; i++) {
        const float g = fminf(y[i], limit), u = up != NULL ? fmaxf(fminf(up[i], limit), -limit) : 0.0f;
        y[i] = g * sigmoid(alpha * g) * (u + 1.0f);
    }
}

QsfActFn qsf_act_fn(const qk_table *t, QsfActKind kind) {
    const QsfActFn fn[QSF_ACT_N] = {
        [QSF_ACT_SILU] = t->silu_mul,    [QSF_ACT_GELU] = t->gelu_mul,
        [QSF_ACT_RELU2] = t->relu2_mul,  [QSF_ACT_RELU] = relu_mul,
        [QSF_ACT_SIGMOID] = sigmoid_mul, [QSF_ACT_SOFTPLUS] = softplus_mul,
        [QSF_ACT_TANH] = tanh_mul,       [QSF_ACT_SWIGLU_OAI] = swiglu_oai_mul,
        [QSF_ACT_EXP] = exp_mul,
    };
    return fn[kind];
}

/* ---- activations with constants ---- */

/* Huang and Schlag 2024 (xIELU), with the constants as Apertus stores them. */
static void xielu(float *x, const float *up, size_t n, const QsfActStep *a) {
    const float ap = softplus(a->a), an = a->c + softplus(a->b);
    for (size_t i = 0; i < n; i++) {
        const float v = x[i];
        x[i] = v > 0.0f ? ap * v * v + a->c * v : (expm1f(fminf(v, a->d)) - v) * an + a->c * v;
        if (up != NULL) x[i] *= up[i];
    }
}

static float between(float x, float low, float high) { return fmaxf(fminf(x, high), low); }

static void swiglu_limit(float *y, const float *up, size_t n, const QsfActStep *a) {
    for (size_t i = 0; i < n; i++) {
        y[i] = fminf(y[i] * sigmoid(y[i]), a->a);
        if (up != NULL) y[i] *= between(up[i], -a->a, a->a);
    }
}

static void situ(float *y, const float *up, size_t n, const QsfActStep *a) {
    for (size_t i = 0; i < n; i++) {
        const float u = up == NULL ? 1.0f : a->b > 0.0f ? a->b * tanhf(up[i] / a->b) : up[i];
        y[i] = a->a * tanhf(y[i] / a->a) * sigmoid(y[i]) * u;
    }
}

void qsf_act(const qk_table *t, const QsfActStep *a, float *y, const float *up, size_t n) {
    if (a->kind == QSF_ACT_XIELU)
        xielu(y, up, n, a);
    else if (a->kind == QSF_ACT_SWIGLU_LIMIT)
        swiglu_limit(y, up, n, a);
    else if (a->kind == QSF_ACT_SITU)
        situ(y, up, n, a);
    else
        qsf_act_fn(t, a->kind)(y, up, n);
}
