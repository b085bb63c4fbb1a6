/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plain vector operations and argmax. */
#include <math.h>
#include <string.h>

#include "tests/kernels/checkkern.h"

enum { SLOT_A, SLOT_B, SLOT_Y, MAX_N = 1030 };

static const size_t sizes[] = { 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1029 };
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

typedef void (*binary_fn)(float *y, const float *x, size_t n);

static double sum_of(double a, double b) { return a + b; }

static double product_of(double a, double b) { return a * b; }

/* One rounding each: only the double result rounded to float is correct. */
static void check_binary(binary_fn fn, double (*truth)(double, double)) {
    for (int s = 0; s < N_SIZES; s++)
        for (int kind = 0; kind < CK_KINDS; kind++) {
            const size_t n = sizes[s];
            float before[MAX_N], *x = ck_tail(SLOT_A, n * sizeof *x), *y = ck_dst(SLOT_Y, n);
            ck_fill_floats(x, n, (ck_kind)kind);
            ck_fill_floats(y, n, (ck_kind)kind);
            memcpy(before, y, n * sizeof *y);
            fn(y, x, n);
            ck_dst_ok(SLOT_Y, n);
            for (size_t i = 0; i < n; i++)
                ck_near(ck_kind_name((ck_kind)kind), i, (double)y[i],
                        (double)(float)truth((double)before[i], (double)x[i]), 0);
        }
}

static void check_add(const qk_table *t, int arg) {
    (void)arg;
    check_binary(t->add, sum_of);
}

static void check_mul(const qk_table *t, int arg) {
    (void)arg;
    check_binary(t->mul, product_of);
}

static void check_scale(const qk_table *t, int arg) {
    (void)arg;
    for (int s = 0; s < N_SIZES; s++) {
        const size_t n = sizes[s];
        const float a = ck_normal();
        float before[MAX_N], *y = ck_dst(SLOT_Y, n);
        ck_fill_floats(y, n, CK_RANDOM);
        memcpy(before, y, n * sizeof *y);
        t->scale(y, a, n);
        ck_dst_ok(SLOT_Y, n);
        for (size_t i = 0; i < n; i++) ck_near("scale", i, (double)y[i], (double)(before[i] * a), 0);
    }
}

static void check_argmax_of(const qk_table *t, const float *x, size_t n, const char *what) {
    size_t want = n, got = n;
    for (size_t i = 0; i < n; i++)
        if (!isnan(x[i]) && (want == n || x[i] > x[want])) want = i;
    if (want == n) want = 0;
    got = t->argmax(x, n);
    if (got != want) ck_error("%s: %zu of %zu, should be %zu", what, got, n, want);
}

static void check_argmax(const qk_table *t, int arg) {
    (void)arg;
    for (int s = 0; s < N_SIZES; s++)
        for (int rep = 0; rep < 20; rep++) {
            const size_t n = sizes[s];
            float *x = ck_tail(SLOT_A, n * sizeof *x);
            ck_fill_floats(x, n, CK_RANDOM);
            check_argmax_of(t, x, n, "random");
            for (size_t i = 0; i < n; i++) x[i] = (float)ck_below(3);
            check_argmax_of(t, x, n, "ties");
            for (size_t i = 0; i < n; i++) x[i] = ck_below(3) ? NAN : -(float)ck_below(5);
            check_argmax_of(t, x, n, "NaN");
            for (size_t i = 0; i < n; i++) x[i] = ck_below(2) ? -INFINITY : NAN;
            check_argmax_of(t, x, n, "-inf");
        }
}

void ck_test_vec(const qk_table *t) {
    ck_check("add", (ck_fn)t->add, check_add, t, 0);
    ck_check("mul", (ck_fn)t->mul, check_mul, t, 0);
    ck_check("scale", (ck_fn)t->scale, check_scale, t, 0);
    ck_check("argmax", (ck_fn)t->argmax, check_argmax, t, 0);
}
