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
static void softplus_mul(float *y, const float *up, size_t n) { apply(y, up, n, softplus); }
static void exp_mul(float *y, const float *up, size_t n) { apply(y, up, n, expf); }
static void tanh_mul(float *y, const float *up, size_t n) { apply(y, up, n, tanhf); }

QsfActFn qsf_act_fn(const qk_table *t, QsfActKind kind) {
    const QsfActFn fn[QSF_ACT_N] = {
        [QSF_ACT_SILU] = t->silu_mul,       [QSF_ACT_GELU] = t->gelu_mul,
        [QSF_ACT_RELU2] = t->relu2_mul,     [QSF_ACT_RELU] = relu_mul,
        [QSF_ACT_SIGMOID] = t->sigmoid_mul, [QSF_ACT_SOFTPLUS] = softplus_mul,
        [QSF_ACT_TANH] = tanh_mul,          [QSF_ACT_EXP] = exp_mul,
    };
    return fn[kind];
}

/* ---- activations with constants ---- */

/* gpt-oss: the gate is at most 7, the other input within +-7 and raised by 1. */
static const qk_swiglu swiglu_oai = { 1.702f, 7.0f, INFINITY, 7.0f, 1.0f };

/* xIELU with the constants as Apertus stores them. */
static void xielu(const qk_table *t, float *y, const float *up, size_t n, const QsfActStep *a) {
    const qk_xielu x = { softplus(a->a), a->c + softplus(a->b), a->c, a->d };
    t->xielu_mul(y, up, n, &x);
}

static void swiglu_limit(const qk_table *t, float *y, const float *up, size_t n, const QsfActStep *a) {
    const qk_swiglu s = { 1.0f, INFINITY, a->a, a->a, 0.0f };
    t->swiglu_mul(y, up, n, &s);
}

static void situ(float *y, const float *up, size_t n, const QsfActStep *a) {
    for (size_t i = 0; i < n; i++) {
        const float u = up == NULL ? 1.0f : a->b > 0.0f ? a->b * tanhf(up[i] / a->b) : up[i];
        y[i] = a->a * tanhf(y[i] / a->a) * sigmoid(y[i]) * u;
    }
}

void qsf_act(const qk_table *t, const QsfActStep *a, float *y, const float *up, size_t n) {
    if (a->kind == QSF_ACT_XIELU)
        xielu(t, y, up, n, a);
    else if (a->kind == QSF_ACT_SWIGLU_LIMIT)
        swiglu_limit(t, y, up, n, a);
    else if (a->kind == QSF_ACT_SWIGLU_OAI)
        t->swiglu_mul(y, up, n, &swiglu_oai);
    else if (a->kind == QSF_ACT_SITU)
        situ(y, up, n, a);
    else
        qsf_act_fn(t, a->kind)(y, up, n);
}
