/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Activation functions, alone and gated. */
#include <math.h>

#include "tests/kernels/checkkern.h"

enum { SLOT_W, SLOT_Y, MAX_N = 2050 };

static const size_t sizes[] = { 1, 2, 7, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257, 2049 };
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

static double silu(double x) { return x / (1 + exp(-x)); }

static double gelu(double x) {
    return x / (1 + exp(-2 * sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

static double relu(double x) { return x > 0 ? x : 0; }

static double relu2(double x) { return x > 0 ? x * x : 0; }

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double softplus(double x) { return fmax(x, 0) + log1p(exp(-fabs(x))); }

#define TRUTH(name, NAME) [QK_GATE_##NAME] = name,
static double (*const truth[QK_GATE_N])(double) = { QK_GATES(TRUTH) };

/* The argument u of exp rounds a few times: a relative error of |u| eps each. */
static double exp_argument(int which, double g) {
    return which == QK_GATE_GELU ? 6 * fabs(g) * (1 + 0.045 * g * g) : fabs(g);
}

/* What does not shrink with the result: tanh is a difference of numbers around 1. */
static double absolute_error(int which) { return which == QK_GATE_TANH ? 4 * CK_EPS : 0; }

static void gate_case(void (*fn)(float *, const float *, size_t), int which, size_t n, float spread,
                      int with_up) {
    float before[MAX_N], *up = ck_tail(SLOT_W, n * sizeof *up), *x = ck_dst(SLOT_Y, n);
    ck_fill_floats(up, n, CK_RANDOM);
    for (size_t i = 0; i < n; i++) {
        before[i] = x[i] = i % 9 == 8 ? 0.0f : ck_normal() * spread;
        if (which == QK_GATE_EXP && x[i] > 80) before[i] = x[i] = 80; /* times up, still a float */
    }
    fn(x, with_up ? up : NULL, n);
    ck_dst_ok(SLOT_Y, n);
    for (size_t i = 0; i < n; i++) {
        const double g = (double)before[i], u = with_up ? (double)up[i] : 1.0;
        const double want = truth[which](g) * u;
        ck_near("gate", i, (double)x[i], want,
                fabs(want) * CK_EPS * (8 + exp_argument(which, g)) +
                    (absolute_error(which) + 0x1p-118) * (1 + fabs(u)));
    }
}

/* A NaN stays in its place and is visible there (relu and relu2 treat it as 0). */
static void gate_nan_case(void (*fn)(float *, const float *, size_t), int which, size_t n) {
    float *x = ck_dst(SLOT_Y, n);
    const size_t at = ck_below(n);
    for (size_t i = 0; i < n; i++) x[i] = i % 2 ? -0x1p-140f : 0x1p-140f;
    x[at] = NAN;
    fn(x, NULL, n);
    ck_dst_ok(SLOT_Y, n);
    for (size_t i = 0; i < n; i++) {
        const int hides = which == QK_GATE_RELU || which == QK_GATE_RELU2;
        if (!hides || i != at)
            ck_near("NaN", i, (double)x[i], i == at ? (double)NAN : truth[which](0),
                    which == QK_GATE_SOFTPLUS ? CK_EPS : 0x1p-140);
    }
}

static void check_gate(const qk_table *t, int which) {
    static const float spread[] = { 1, 10, 100, 1e4f };
    void (*const fn)(float *, const float *, size_t) = t->gate[which];
    for (int s = 0; s < N_SIZES; s++)
        for (int i = 0; i < 8; i++) gate_case(fn, which, sizes[s], spread[i / 2], i % 2);
    for (int s = 0; s < N_SIZES; s++) gate_nan_case(fn, which, sizes[s]);
}

static void check_softcap(const qk_table *t, int arg) {
    static const float caps[] = { 30, 50, 0.5f, 1 };
    (void)arg;
    for (int rep = 0; rep < N_SIZES * 4; rep++) {
        const double cap = (double)caps[rep % 4];
        const size_t n = sizes[rep / 4], bad = ck_below(n);
        float before[MAX_N], *y = ck_dst(SLOT_Y, n);
        for (size_t i = 0; i < n; i++)
            before[i] = y[i] = i % 9 == 8 ? 0.0f : ck_normal() * (i % 5 == 4 ? 1e4f : 20.0f);
        if (rep % 3 == 2) before[bad] = y[bad] = NAN;
        t->softcap(y, caps[rep % 4], n);
        ck_dst_ok(SLOT_Y, n);
        for (size_t i = 0; i < n; i++)
            ck_near("softcap", i, (double)y[i], cap * tanh((double)before[i] / cap), 5 * CK_EPS * cap);
    }
}

/* Limits within the range of the inputs, and none. */
static void check_swiglu(const qk_table *t, int arg) {
    static const qk_swiglu kinds[] = { { 1.702f, 7, INFINITY, 7, 1 },
                                       { 1, INFINITY, 2.5f, 2.5f, 0 },
                                       { 0.5f, 3, 1, 40, -2 } };
    (void)arg;
    for (int rep = 0; rep < N_SIZES * 6; rep++) {
        const qk_swiglu *s = &kinds[rep % 3];
        const size_t n = sizes[rep / 6], bad = ck_below(n);
        float before[MAX_N], *up = ck_tail(SLOT_W, n * sizeof *up), *x = ck_dst(SLOT_Y, n);
        for (size_t i = 0; i < n; i++) {
            before[i] = x[i] = ck_normal() * (i % 5 == 4 ? 100.0f : 4.0f);
            up[i] = ck_normal() * (i % 7 == 3 ? 1e4f : 4.0f);
        }
        if (rep % 5 == 4) before[bad] = x[bad] = NAN;
        t->swiglu_mul(x, rep % 2 ? up : NULL, n, s);
        ck_dst_ok(SLOT_Y, n);
        for (size_t i = 0; i < n; i++) {
            const double g = fmin((double)before[i], (double)s->gate_most), alpha = (double)s->alpha;
            const double a = fmin(g / (1 + exp(-alpha * g)), (double)s->most);
            const double u = fmax(fmin((double)up[i], (double)s->up_most), -(double)s->up_most);
            const double want = rep % 2 ? a * (u + (double)s->up_plus) : a;
            ck_near("swiglu", i, (double)x[i], isnan(before[i]) ? (double)NAN : want,
                    CK_EPS * (10 + 2 * fabs(alpha * g)) * fabs(a) * (rep % 2 ? 2 + fabs(u) : 1) +
                        0x1p-118 * (2 + fabs(u)));
        }
    }
}

static void check_xielu(const qk_table *t, int arg) {
    static const qk_xielu kinds[] = { { 0.8f, 1.3f, 0.5f, -1e-6f }, { 2, 0.25f, 0, -0.5f } };
    (void)arg;
    for (int rep = 0; rep < N_SIZES * 4; rep++) {
        const qk_xielu *s = &kinds[rep % 2];
        const size_t n = sizes[rep / 4], bad = ck_below(n);
        float before[MAX_N], *up = ck_tail(SLOT_W, n * sizeof *up), *x = ck_dst(SLOT_Y, n);
        ck_fill_floats(up, n, CK_RANDOM);
        for (size_t i = 0; i < n; i++)
            before[i] = x[i] = i % 9 == 8 ? 0.0f : ck_normal() * (i % 5 == 4 ? 100.0f : 1.0f);
        if (rep % 3 == 2) before[bad] = x[bad] = NAN;
        t->xielu_mul(x, rep % 4 < 2 ? up : NULL, n, s);
        ck_dst_ok(SLOT_Y, n);
        for (size_t i = 0; i < n; i++) {
            const double v = (double)before[i], u = rep % 4 < 2 ? (double)up[i] : 1;
            const double square = v > 0 ? (double)s->positive * v * v : 0;
            const double rest = v < 0 ? (double)s->negative * (expm1(fmin(v, (double)s->eps)) - v) : 0;
            ck_near("xielu", i, (double)x[i],
                    isnan(v) ? (double)NAN : u * ((double)s->beta * v + square + rest),
                    CK_EPS * 8 * fabs(u) * (1 + fabs(v) + square + (double)s->negative * (1 + fabs(v))));
        }
    }
}

void ck_test_act(const qk_table *t) {
#define CHECK_GATE(name, NAME) \
    ck_check(#name "_mul", (ck_fn)t->gate[QK_GATE_##NAME], check_gate, t, QK_GATE_##NAME);
    QK_GATES(CHECK_GATE)
    ck_check("softcap", (ck_fn)t->softcap, check_softcap, t, 0);
    ck_check("swiglu_mul", (ck_fn)t->swiglu_mul, check_swiglu, t, 0);
    ck_check("xielu_mul", (ck_fn)t->xielu_mul, check_xielu, t, 0);
}
