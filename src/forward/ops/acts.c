/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Activation functions: which kernel computes each. */
#include <math.h>
#include <stddef.h>

#include "src/forward/forward_impl.h"

#define GATE(name, NAME) \
    [QSF_ACT_##NAME] = { #name "_mul", offsetof(qk_table, gate[QK_GATE_##NAME]), true, QK_GATE_##NAME },
static const struct {
    const char *name;
    size_t at; /* in the table */
    bool is_gate;
    qk_gate gate;
} kernels[QSF_ACT_N] = {
    QK_GATES(GATE)[QSF_ACT_XIELU] = { .name = "xielu_mul", .at = offsetof(qk_table, xielu_mul) },
    [QSF_ACT_SWIGLU_LIMIT] = { .name = "swiglu_mul", .at = offsetof(qk_table, swiglu_mul) },
    [QSF_ACT_SWIGLU_OAI] = { .name = "swiglu_mul", .at = offsetof(qk_table, swiglu_mul) },
};

const char *qsf_act_kernel(QsfActKind kind, size_t *at) {
    *at = kernels[kind].at;
    return kernels[kind].name;
}

QsfActFn qsf_act_fn(const qk_table *t, QsfActKind kind) {
    return kernels[kind].is_gate ? t->gate[kernels[kind].gate] : NULL;
}

/* ---- activations with constants ---- */

/* gpt-oss: the gate is at most 7, the other input within +-7 and raised by 1. */
static const qk_swiglu swiglu_oai = { 1.702f, 7.0f, INFINITY, 7.0f, 1.0f };

static float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

/* xIELU with the constants as Apertus stores them. */
static void xielu(const qk_table *t, float *y, const float *up, size_t n, const QsfActStep *a) {
    const qk_xielu x = { softplus(a->a), a->c + softplus(a->b), a->c, a->d };
    t->xielu_mul(y, up, n, &x);
}

static void swiglu_limit(const qk_table *t, float *y, const float *up, size_t n, const QsfActStep *a) {
    const qk_swiglu s = { 1.0f, INFINITY, a->a, a->a, 0.0f };
    t->swiglu_mul(y, up, n, &s);
}

/* The only one without a kernel. */
static void situ(float *y, const float *up, size_t n, const QsfActStep *a) {
    for (size_t i = 0; i < n; i++) {
        const float u = up == NULL ? 1.0f : a->b > 0.0f ? a->b * tanhf(up[i] / a->b) : up[i];
        y[i] = a->a * tanhf(y[i] / a->a) / (1.0f + expf(-y[i])) * u;
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
