/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Norms. */
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

static void l2_norm_case(const qk_table *t, size_t n, float least, int in_place) {
    float *y = ck_dst(SLOT_Y, n), *x = in_place ? y : ck_tail(SLOT_X, n * sizeof *x), before[MAX_N];
    double sum = 0;
    ck_fill_floats(x, n, CK_RANDOM);
    memcpy(before, x, n * sizeof *x);
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    t->l2_norm(y, x, n, least);
    ck_dst_ok(SLOT_Y, n);
    for (size_t i = 0; i < n; i++) {
        const double want = (double)before[i] / fmax(sqrt(sum), (double)least);
        ck_near("l2_norm", i, (double)y[i], want, fabs(want) * CK_EPS * (6 + (double)n / 32));
    }
}

/* Rows shorter than eps, and zeros, are divided by it. */
static void check_l2_norm(const qk_table *t, int arg) {
    (void)arg;
    for (int s = 0; s < N_SIZES; s++)
        for (int rep = 0; rep < 4; rep++) l2_norm_case(t, sizes[s], rep % 2 ? 1e3f : 1e-6f, rep / 2);
    float *y = ck_dst(SLOT_Y, 35);
    memset(y, 0, 35 * sizeof *y);
    t->l2_norm(y, y, 35, 1e-6f);
    for (size_t i = 0; i < 35; i++) ck_near("zeros", i, (double)y[i], 0, 0);
}

static void check_keep_above(const qk_table *t, int arg) {
    static const float far[] = { 1.6449f, 0, -1 };
    (void)arg;
    for (int rep = 0; rep < N_SIZES * 3; rep++) {
        const size_t n = sizes[rep / 3] + 1;
        float *y = ck_dst(SLOT_Y, n), before[MAX_N];
        double mean = 0, var = 0, most = 0;
        ck_fill_floats(y, n, CK_RANDOM);
        memcpy(before, y, n * sizeof *y);
        for (size_t i = 0; i < n; i++) {
            mean += (double)y[i] / (double)n;
            most = fmax(most, fabs((double)y[i]));
        }
        for (size_t i = 0; i < n; i++) var += ((double)y[i] - mean) * ((double)y[i] - mean);
        t->keep_above(y, n, far[rep % 3]);
        ck_dst_ok(SLOT_Y, n);
        const double cut = mean + (double)far[rep % 3] * sqrt(var / (double)(n - 1));
        for (size_t i = 0; i < n; i++)
            ck_near("keep_above", i, (double)y[i], fmax((double)before[i] - cut, 0),
                    CK_EPS * (8 + (double)n / 16) * most);
    }
}

void ck_test_norm(const qk_table *t) {
    ck_check("rms_norm", (ck_fn)t->rms_norm, check_rms_norm, t, 0);
    ck_check("layer_norm", (ck_fn)t->layer_norm, check_layer_norm, t, 0);
    ck_check("l2_norm", (ck_fn)t->l2_norm, check_l2_norm, t, 0);
    ck_check("keep_above", (ck_fn)t->keep_above, check_keep_above, t, 0);
    ck_check("rms_norm_odd", (ck_fn)t->rms_norm, check_norm_odd, t, 0);
    ck_check("layer_norm_odd", (ck_fn)t->layer_norm, check_norm_odd, t, 1);
}
