/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Error measures, outliers, allocation of bytes and the table of roles. */
#include <math.h>

#include "src/base/half.h"
#include "src/convert/quant/allocate.h"
#include "src/convert/quant/measure.h"
#include "src/convert/quant/outliers.h"
#include "tests/harness/qsf_test.h"

static uint32_t seed = 1;
static uint32_t next(uint32_t below) { return (seed = seed * 1664525u + 1013904223u) / 7u % below; }

/* ---- measures */

static void test_measure(void **state) {
    (void)state;
    static const float x[6] = { 3, 0, -4, 1, 2, 2 }, y[6] = { 3, 1, -4, 1, 2, -1 }, w[3] = { 0, 1, 2 };
    QsfQuantStats all = { 0 }, second = { 0 };
    QsfQuantStats parts = { 0 };
    qsf_stats_add(&all, &(QsfQuantRows){ x, w, 10, 2, 3 }, y);
    assert_int_equal(all.n, 6);
    assert_true(all.signal == 34 && all.noise == 10 && all.decoded == 32 && all.product == 28);
    assert_true(all.heavy_signal == 0 + 0 + 32 + 0 + 4 + 8 && all.heavy_noise == 1 + 18);
    assert_true(all.max_error == 3 && all.max_row == 11 && all.max_col == 2);
    assert_true(fabs(qsf_stats_snr(&all) - 10 * log10(3.4)) < 1e-12);
    assert_true(fabs(qsf_stats_cosine(&all) - 28 / sqrt(34.0 * 32)) < 1e-12);
    qsf_stats_add(&parts, &(QsfQuantRows){ x, w, 10, 1, 3 }, y);
    qsf_stats_add(&second, &(QsfQuantRows){ x + 3, w, 11, 1, 3 }, y + 3);
    qsf_stats_merge(&parts, &second);
    assert_memory_equal(&parts, &all, sizeof all);
}

static void test_measure_ends(void **state) {
    (void)state;
    static const float zero[2] = { 0, 0 }, one[2] = { 1, 1 };
    QsfQuantStats none = { 0 }, exact = { 0 }, lost = { 0 };
    qsf_stats_add(&none, &(QsfQuantRows){ zero, NULL, 0, 1, 2 }, zero);
    qsf_stats_add(&exact, &(QsfQuantRows){ one, NULL, 0, 1, 2 }, one);
    qsf_stats_add(&lost, &(QsfQuantRows){ one, NULL, 0, 1, 2 }, zero);
    assert_true(qsf_stats_snr(&none) == 0 && qsf_stats_cosine(&none) == 1);
    assert_true(isinf(qsf_stats_snr(&exact)) && fabs(qsf_stats_cosine(&exact) - 1) < 1e-15);
    assert_true(qsf_stats_snr(&lost) == 0 && qsf_stats_cosine(&lost) == 0);
}

/* ---- outliers */

enum { R = 20, C = 50, N = R * C };

static void test_moments(void **state) {
    (void)state;
    float x[N];
    QsfMoments all = { 0 }, parts = { 0 };
    QsfErr err = { 0 };
    for (int i = 0; i < N; i++) x[i] = 1000 + (float)next(1000) / 500;
    assert_int_equal(qsf_moments_add(&all, &(QsfQuantRows){ x, NULL, 0, R, C }, &err), QSF_OK);
    for (size_t r = 0; r < R; r += 5)
        assert_int_equal(qsf_moments_add(&parts, &(QsfQuantRows){ x + r * C, NULL, r, 5, C }, &err), QSF_OK);
    assert_int_equal(parts.n, N);
    assert_true(fabs(parts.mean - all.mean) < 1e-9 && fabs(parts.squares / all.squares - 1) < 1e-9);
    assert_true(fabs(all.mean - 1001) < 0.1 && fabs(all.squares / N - 1.0 / 3) < 0.03);
    x[77] = NAN;
    qsf_moments_add(&all, &(QsfQuantRows){ x, NULL, 100, R, C }, &err);
    qsf_test_expect_err(&err, QSF_E_MODEL, "row 101, column 27 is not a number");
}

static void test_way(void **state) {
    (void)state;
    assert_int_equal(qsf_outlier_way(0, 100), QSF_OUTLIERS_NONE);
    assert_int_equal(qsf_outlier_way(0, 0), QSF_OUTLIERS_NONE);
    assert_int_equal(qsf_outlier_way(99, 100000), QSF_OUTLIERS_CLAMP);
    assert_int_equal(qsf_outlier_way(100, 100000), QSF_OUTLIERS_LIST);
    assert_int_equal(qsf_outlier_way(1000, 100000), QSF_OUTLIERS_LIST);
    assert_int_equal(qsf_outlier_way(1001, 100000), QSF_OUTLIERS_BUMP);
}

/* Alternating -1 and 1 with a few large values: mean nearly 0, deviation nearly 1. */
static QsfOutlierLimits prepare(float *x, int every) {
    QsfMoments m = { 0 };
    for (int i = 0; i < N; i++) x[i] = i % 2 ? 1 : -1;
    for (int i = 3; every && i < N; i += every) x[i] = i % 4 == 3 ? 8 : -9;
    assert_int_equal(qsf_moments_add(&m, &(QsfQuantRows){ x, NULL, 0, R, C }, NULL), QSF_OK);
    return qsf_outlier_limits(&m);
}

static void test_list(void **state) {
    (void)state;
    float x[N], y[N];
    QsfOutlier list[N];
    const QsfOutlierLimits l = prepare(x, 111); /* 3, 114, ..., 891: nine of them, 0.9 % */
    const QsfQuantRows rows = { x, NULL, 7, R, C };
    assert_int_equal(qsf_outlier_count(&l, &rows), 9);
    assert_int_equal(qsf_outlier_way(9, N), QSF_OUTLIERS_LIST);
    memcpy(y, x, sizeof x);
    assert_int_equal(qsf_outlier_take(&l, QSF_OUTLIERS_LIST, x, 7, R, C, list), 9);
    for (uint32_t i = 0; i < 9; i++) {
        const uint32_t at = 3 + 111 * i;
        assert_int_equal(list[i].row, 7 + at / C);
        assert_int_equal(list[i].col, at % C);
        assert_true(qsf_half_value(list[i].half) == y[at]);
        assert_true(x[at] == l.mean);
    }
    assert_int_equal(qsf_outlier_count(&l, &rows), 0);
    for (uint32_t i = 0; i < 9; i++) x[(list[i].row - 7) * C + list[i].col] = qsf_half_value(list[i].half);
    assert_memory_equal(x, y, sizeof x);
}

static void test_clamp_and_bump(void **state) {
    (void)state;
    float x[N], y[N];
    const QsfOutlierLimits l = prepare(x, 111);
    memcpy(y, x, sizeof x);
    assert_int_equal(qsf_outlier_take(&l, QSF_OUTLIERS_BUMP, x, 0, R, C, NULL), 0);
    assert_memory_equal(x, y, sizeof x);
    assert_int_equal(qsf_outlier_take(&l, QSF_OUTLIERS_CLAMP, x, 0, R, C, NULL), 0);
    assert_true(x[3] == l.high && x[114] == l.low && x[4] == -1);
    assert_true(l.high > 3 && l.high < 5 && l.low < -3 && l.low > -5);
}

/* ---- allocation of bytes */

enum { T = 5, O = 4 };

static QsfAllocOption options[T][O];
static QsfAllocTensor tensors[T];

/* Tensors of random size whose error falls by roughly 6 dB per bit. */
static void random_tensors(void) {
    for (size_t t = 0; t < T; t++) {
        const uint64_t size = 1000 + next(100000);
        for (size_t o = 0; o < O; o++)
            options[t][o] = (QsfAllocOption){ size * (o + 2) + next(50),
                                              (double)(100 + next(40)) / (double)(1u << 2 * o) };
        tensors[t] = (QsfAllocTensor){ "t", options[t], O, 15, 1 + next(3), 99 };
        if (next(3) == 0) tensors[t].allowed = 14;
    }
}

static double error_now(void) {
    double sum = 0;
    for (size_t t = 0; t < T; t++) sum += tensors[t].weight * options[t][tensors[t].chosen].error;
    return sum;
}

/* All possible choices. */
static double error_best(uint64_t target) {
    double best = INFINITY;
    for (unsigned k = 0; k < 1u << 2 * T; k++) {
        uint64_t bytes = 0;
        double error = 0;
        bool may = true;
        for (size_t t = 0; t < T; t++) {
            const unsigned o = k >> 2 * t & 3;
            may &= tensors[t].allowed >> o & 1;
            bytes += options[t][o].bytes;
            error += tensors[t].weight * options[t][o].error;
        }
        if (may && bytes <= target && error < best) best = error;
    }
    return best;
}

static void test_allocate(void **state) {
    (void)state;
    double worst = 1, sum = 0;
    int cases = 0;
    for (int round = 0; round < 300; round++) {
        uint64_t least, total, bytes = 0;
        QsfErr err = { 0 };
        random_tensors();
        assert_int_equal(qsf_allocate(tensors, T, 0, &least, &err), QSF_E_USAGE);
        qsf_err_clear(&err);
        const uint64_t target = least + next((uint32_t)least);
        qsf_test_expect_ok(qsf_allocate(tensors, T, target, &total, &err), &err);
        for (size_t t = 0; t < T; t++) {
            bytes += options[t][tensors[t].chosen].bytes;
            assert_true(tensors[t].allowed >> tensors[t].chosen & 1);
        }
        assert_int_equal(bytes, total);
        assert_true(total <= target);
        const double ratio = error_now() / error_best(target);
        assert_true(ratio >= 1 - 1e-12);
        worst = fmax(worst, ratio);
        sum += ratio;
        cases++;
    }
    print_message("error against the best of all choices: %.4f times on average, %.3f at worst\n",
                  sum / cases, worst);
    assert_true(sum / cases < 1.02 && worst < 1.3);
}

static void test_allocate_known(void **state) {
    (void)state;
    /* Hull steps 10 -> 20 (rate 0.8) and 10 -> 15 (0.6): 35 bytes buy both, 25 the first, 24
     * the second alone. */
    static const QsfAllocOption a[] = { { 20, 1 }, { 10, 9 } }, b[] = { { 10, 4 }, { 15, 1 } };
    QsfAllocTensor t[2] = { { "a", a, 2, 3, 1, 0 }, { "b", b, 2, 3, 1, 0 } };
    static const struct {
        uint64_t target, total;
        size_t a, b;
    } wants[] = {
        { 35, 35, 0, 1 }, { 34, 30, 0, 0 }, { 30, 30, 0, 0 }, { 29, 25, 1, 1 },
        { 25, 25, 1, 1 }, { 24, 20, 1, 0 }, { 20, 20, 1, 0 }, { UINT64_MAX, 35, 0, 1 },
    };
    for (size_t i = 0; i < sizeof wants / sizeof *wants; i++) {
        uint64_t total;
        assert_int_equal(qsf_allocate(t, 2, wants[i].target, &total, NULL), QSF_OK);
        assert_true(total == wants[i].total && t[0].chosen == wants[i].a && t[1].chosen == wants[i].b);
    }
    /* A weight reverses the order. */
    uint64_t total;
    t[1].weight = 3;
    assert_int_equal(qsf_allocate(t, 2, 34, &total, NULL), QSF_OK);
    assert_true(total == 25 && t[1].chosen == 1);
}

static void test_allocate_refused(void **state) {
    (void)state;
    static const QsfAllocOption good[] = { { 20, 1 }, { 10, 9 } }, bad[] = { { 20, NAN } };
    QsfAllocTensor t[2] = { { "one", good, 2, 3, 1, 0 }, { "two", good, 2, 1, 1, 0 } };
    uint64_t total;
    QsfErr err = { 0 };
    qsf_allocate(t, 2, 29, &total, &err);
    qsf_test_expect_err(&err, QSF_E_USAGE, "29 bytes are too few: the weights need at least 30");
    assert_int_equal(total, 30);
    qsf_err_clear(&err);
    t[1].allowed = 0;
    qsf_allocate(t, 2, 100, &total, &err);
    qsf_test_expect_err(&err, QSF_E_RUNTIME, "two: no format is allowed");
    qsf_err_clear(&err);
    t[1] = (QsfAllocTensor){ "two", bad, 1, 1, 1, 0 };
    qsf_allocate(t, 2, 100, &total, &err);
    qsf_test_expect_err(&err, QSF_E_RUNTIME, "two: the error of format 0");
    assert_int_equal(qsf_allocate(t, 0, 0, &total, NULL), QSF_OK);
}

/* ---- roles */

static void test_policy(void **state) {
    (void)state;
    assert_int_equal(qsf_quant_policy(0, 5, 12).floor, 2);
    assert_int_equal(qsf_quant_policy(0, 0, 12).floor, 3);
    assert_int_equal(qsf_quant_policy(0, 11, 12).start, 4);
    assert_int_equal(qsf_quant_policy(2, 5, 12).start, 4);
    assert_int_equal(qsf_quant_policy(6, 5, 12).start, 4);
    assert_true(qsf_quant_policy(6, 5, 12).weight > qsf_quant_policy(4, 5, 12).weight);
    assert_int_equal(qsf_quant_policy(QSF_ROLE_EMBEDDING, 0, 12).start, 4);
    assert_int_equal(qsf_quant_policy(7, 3, 12).floor, 16);
    assert_int_equal(qsf_quant_policy(22, 3, 12).start, 16);
    assert_int_equal(qsf_quant_policy(1000, 3, 12).start, 16);
}

static void test_climb(void **state) {
    (void)state;
    static const QsfQuantRung rungs[] = { { 2, 0.95 }, { 3, 0.985 }, { 4, 0.997 }, { 8, 0.99999 } };
    QsfStepUp why;
    assert_int_equal(qsf_quant_climb(rungs, 4, 2, 0, &why), 2);
    assert_int_equal(why, QSF_BUMP_COSINE);
    assert_int_equal(qsf_quant_climb(rungs, 4, 4, 0, &why), 2);
    assert_int_equal(why, QSF_BUMP_NONE);
    assert_int_equal(qsf_quant_climb(rungs, 4, 3, 1, &why), 2);
    assert_int_equal(why, QSF_BUMP_OUTLIERS);
    assert_int_equal(qsf_quant_climb(rungs, 2, 2, 0, &why), 1);
    assert_int_equal(qsf_quant_climb(rungs, 4, 16, 0, &why), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measure),
        cmocka_unit_test(test_measure_ends),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_way),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_clamp_and_bump),
        cmocka_unit_test(test_allocate),
        cmocka_unit_test(test_allocate_known),
        cmocka_unit_test(test_allocate_refused),
        cmocka_unit_test(test_policy),
        cmocka_unit_test(test_climb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
