/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Norms, and the gated activations. */
#include <math.h>
#include <string.h>

#include "tests/kernels/checkkern.h"

enum { SLOT_X, SLOT_W, SLOT_Y, SLOT_B, MAX_N = 2050 };

static const size_t sizes[] = { 1, 2, 7, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257, 2049 };
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

static const float eps = 1e-5f;

static void check_rms_norm(const qk_table *t, int arg) {
    (void)arg;
    for (int s = 0; s < N_SIZES; s++) {
        const size_t n = sizes[s];
        float *x = ck_tail(SLOT_X, n * sizeof *x), *w = ck_tail(SLOT_W, n * sizeof *w),
              *y = ck_dst(SLOT_Y, n);
        double sum = 0;
        ck_fill_floats(x, n, CK_RANDOM);
        ck_fill_floats(w, n, CK_RANDOM);
        for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
        t->rms_norm(y, x, w, n, eps);
        ck_dst_ok(SLOT_Y, n);
        for (size_t i = 0; i < n; i++) {
            const double want = (double)x[i] / sqrt(sum / (double)n + (double)eps) * (double)w[i];
            ck_near("rms_norm", i, (double)y[i], want, fabs(want) * CK_EPS * (6 + (double)n / 32));
        }
    }
}

static void layer_norm_case(const qk_table *t, size_t n, int bias) {
    float *x = ck_tail(SLOT_X, n * sizeof *x), *w = ck_tail(SLOT_W, n * sizeof *w), *y = ck_dst(SLOT_Y, n);
    float *b = ck_tail(SLOT_B, n * sizeof *b);
    double mean = 0, var = 0, mags = 0;
    ck_fill_floats(x, n, CK_RANDOM);
    ck_fill_floats(w, n, CK_RANDOM);
    ck_fill_floats(b, n, CK_RANDOM);
    for (size_t i = 0; i < n; i++) mean += (double)x[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        var += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)n;
        mags += fabs((double)x[i]) / (double)n;
    }
    t->layer_norm(y, x, w, bias ? b : NULL, n, eps);
    ck_dst_ok(SLOT_Y, n);
    for (size_t i = 0; i < n; i++) {
        const double r = 1 / sqrt(var + (double)eps), off = bias ? (double)b[i] : 0;
        const double want = ((double)x[i] - mean) * r * (double)w[i] + off;
        const double size = (fabs((double)x[i]) + mags) * r * fabs((double)w[i]) + fabs(off);
        ck_near("layer_norm", i, (double)y[i], want, CK_EPS * (6 + (double)n / 32) * size);
    }
}

/* A NaN or infinity makes all elements NaN; zeros stay zeros, whatever their sign. */
static void norm_odd_case(const qk_table *t, size_t n, float odd, int layer) {
    float *x = ck_tail(SLOT_X, n * sizeof *x), *w = ck_tail(SLOT_W, n * sizeof *w), *y = ck_dst(SLOT_Y, n);
    for (size_t i = 0; i < n; i++) {
        x[i] = i % 2 ? -0.0f : 0.0f;
        w[i] = 1.0f;
    }
    x[ck_below(n)] = odd;
    if (layer)
        t->layer_norm(y, x, w, NULL, n, eps);
    else
        t->rms_norm(y, x, w, n, eps);
    ck_dst_ok(SLOT_Y, n);
    for (size_t i = 0; i < n; i++) ck_near("odd", i, (double)y[i], isnan(odd) ? (double)NAN : 0, 0x1p-120);
}

static void check_norm_odd(const qk_table *t, int layer) {
    for (int s = 0; s < N_SIZES; s++) {
        norm_odd_case(t, sizes[s], NAN, layer);
        norm_odd_case(t, sizes[s], 0x1p-149f, layer);
        norm_odd_case(t, sizes[s], -0.0f, layer);
    }
}

static void check_layer_norm(const qk_table *t, int arg) {
    (void)arg;
    for (int s = 0; s < N_SIZES; s++)
        for (int bias = 0; bias < 2; bias++) layer_norm_case(t, sizes[s], bias);
}

void ck_test_norm(const qk_table *t) {
    ck_check("rms_norm", (ck_fn)t->rms_norm, check_rms_norm, t, 0);
    ck_check("layer_norm", (ck_fn)t->layer_norm, check_layer_norm, t, 0);
    ck_check("rms_norm_odd", (ck_fn)t->rms_norm, check_norm_odd, t, 0);
    ck_check("layer_norm_odd", (ck_fn)t->layer_norm, check_norm_odd, t, 1);
}

static double silu(double x) { return x / (1 + exp(-x)); }

static double gelu(double x) {
    return x / (1 + exp(-2 * sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

static double relu2(double x) { return x > 0 ? x * x : 0; }

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

enum { SILU, GELU, RELU2, SIGMOID };

/* The argument u of exp rounds a few times: a relative error of |u| eps each. */
static double exp_argument(int which, double g) {
    return which == GELU ? 6 * fabs(g) * (1 + 0.045 * g * g) : fabs(g);
}

static void gate_case(void (*fn)(float *, const float *, size_t), int which, size_t n, float spread,
                      int with_up) {
    static double (*const truth[])(double) = { silu, gelu, relu2, sigmoid };
    float before[MAX_N], *up = ck_tail(SLOT_W, n * sizeof *up), *x = ck_dst(SLOT_Y, n);
    ck_fill_floats(up, n, CK_RANDOM);
    for (size_t i = 0; i < n; i++) before[i] = x[i] = i % 9 == 8 ? 0.0f : ck_normal() * spread;
    fn(x, with_up ? up : NULL, n);
    ck_dst_ok(SLOT_Y, n);
    for (size_t i = 0; i < n; i++) {
        const double g = (double)before[i], u = with_up ? (double)up[i] : 1.0;
        const double want = truth[which](g) * u;
        ck_near("gate", i, (double)x[i], want,
                fabs(want) * CK_EPS * (8 + exp_argument(which, g)) + 0x1p-118 * (1 + fabs(u)));
    }
}

/* A NaN stays in its place and is visible there (relu2 treats it as 0). */
static void gate_nan_case(void (*fn)(float *, const float *, size_t), int which, size_t n) {
    float *x = ck_dst(SLOT_Y, n);
    const size_t at = ck_below(n);
    for (size_t i = 0; i < n; i++) x[i] = i % 2 ? -0x1p-140f : 0x1p-140f;
    x[at] = NAN;
    fn(x, NULL, n);
    ck_dst_ok(SLOT_Y, n);
    for (size_t i = 0; i < n; i++) {
        const double rest = which == SIGMOID ? 0.5 : 0;
        if (which != RELU2 || i != at)
            ck_near("NaN", i, (double)x[i], i == at ? (double)NAN : rest, 0x1p-140);
    }
}

static void check_gate(const qk_table *t, int which) {
    static const float spread[] = { 1, 10, 100, 1e4f };
    void (*const fns[])(float *, const float *, size_t) = { t->silu_mul, t->gelu_mul, t->relu2_mul,
                                                            t->sigmoid_mul };
    void (*const fn)(float *, const float *, size_t) = fns[which];
    for (int s = 0; s < N_SIZES; s++)
        for (int i = 0; i < 8; i++) gate_case(fn, which, sizes[s], spread[i / 2], i % 2);
    for (int s = 0; s < N_SIZES; s++) gate_nan_case(fn, which, sizes[s]);
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
    ck_check("silu_mul", (ck_fn)t->silu_mul, check_gate, t, SILU);
    ck_check("gelu_mul", (ck_fn)t->gelu_mul, check_gate, t, GELU);
    ck_check("relu2_mul", (ck_fn)t->relu2_mul, check_gate, t, RELU2);
    ck_check("sigmoid_mul", (ck_fn)t->sigmoid_mul, check_gate, t, SIGMOID);
    ck_check("swiglu_mul", (ck_fn)t->swiglu_mul, check_swiglu, t, 0);
    ck_check("xielu_mul", (ck_fn)t->xielu_mul, check_xielu, t, 0);
}
