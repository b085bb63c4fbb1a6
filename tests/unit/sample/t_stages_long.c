/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stages and draws of which thousands of tokens are left, which are computed in float, compared with their
 * definitions in double. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N 20011

#include "tests/harness/stage_rig.h"

typedef struct Token {
    double key, x, p;
} Token;

static Token set[N], by_id[N];
static float x[N];

static int last_first(const void *a, const void *b) {
    const double p = ((const Token *)a)->key, q = ((const Token *)b)->key;
    return p < q ? -1 : p > q;
}

/* Makes the probabilities of the first n of set. Returns their entropy. */
static double soften(size_t n, double temperature) {
    double total = 0, h = 0, max = set[0].x;
    for (size_t i = 0; i < n; i++) max = set[i].x > max ? set[i].x : max;
    for (size_t i = 0; i < n; i++) total += exp((set[i].x - max) / temperature);
    for (size_t i = 0; i < n; i++) set[i].p = exp((set[i].x - max) / temperature) / total;
    for (size_t i = 0; i < n; i++) h -= set[i].p > 0 ? set[i].p * log(set[i].p) : 0;
    return h;
}

static double fill(uint64_t seed, double spread) {
    random_logits(x, seed, spread);
    for (size_t i = 0; i < N; i++) set[i] = (Token){ .x = (double)x[i] };
    const double h = soften(N, 1);
    memcpy(by_id, set, sizeof set);
    return h;
}

/* The first of set, the smallest keys first, that have this probability. */
static size_t reach(double mass) {
    double sum = 0;
    size_t n = 0;
    qsort(set, N, sizeof *set, last_first);
    while (n < N && sum < mass) sum += set[n++].p;
    return n;
}

/* Draws; the probability of what is drawn is `all` times that in by_id. */
static void compare(const QSFParams *p, size_t n) {
    const QsfSamplerInput in = { .logits = x, .params = p };
    double all = 0;
    for (size_t i = 0; i < n; i++) all += set[i].p;
    for (int i = 0; i < 4; i++) {
        const QsfSample got = next(&in);
        assert_true(labs((long)got.kept - (long)n) <= 2);
        assert_true(fabs((double)got.p / (by_id[got.id].p / all) - 1) < 1e-4);
    }
}

static void test_top_p(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 4; i++) {
        QSFParams p = plain();
        (void)fill(i, i % 2 ? 1 : 0.2);
        p.top_p = 0.97f;
        for (size_t k = 0; k < N; k++) set[k].key = -set[k].p;
        compare(&p, reach((double)p.top_p));
    }
}

static void test_typical(void **state) {
    (void)state;
    static const float masses[] = { 0.9f, 0.5f, 0.97f, 0.995f };
    for (uint64_t i = 0; i < 8; i++) {
        QSFParams p = plain();
        const double h = fill(i, i < 4 ? 1 : i == 7 ? 12 : 3);
        p.typical = masses[i % 4];
        for (size_t k = 0; k < N; k++) set[k].key = fabs(-log(set[k].p) - h);
        compare(&p, reach((double)p.typical));
    }
}

/* All logits equal: none is closer than another one. */
static void test_typical_of_equal_logits(void **state) {
    (void)state;
    QSFParams p = plain();
    p.typical = 0.5f;
    for (size_t k = 0; k < N; k++) x[k] = 3;
    const QsfSamplerInput in = { .logits = x, .params = &p };
    assert_true(labs((long)next(&in).kept - N / 2) < 20);
}

/* The entropy of a long list decides about the temperature, and the draw is at that one. */
static void test_dynamic_temperature(void **state) {
    (void)state;
    QSFParams p = plain();
    (void)fill(1, 1);
    p.top_p = 0.97f;
    p.dynatemp = 0.5f;
    for (size_t k = 0; k < N; k++) set[k].key = -set[k].p;
    const size_t n = reach((double)p.top_p);
    const double t = 0.5 + soften(n, 1) / log((double)n);
    (void)soften(n, t);
    for (int i = 0; i < 8; i++) {
        const QsfSamplerInput in = { .logits = x, .params = &p };
        const QsfSample got = next(&in);
        const double want = set[0].p * exp((by_id[got.id].x - set[0].x) / t);
        assert_true(fabs((double)got.p / want - 1) < 1e-3);
    }
}

/* adaptive-p after a stage that leaves a long list, and after none: see t_stages for the definition. */
static void test_adaptive_p(void **state) {
    (void)state;
    for (int listed = 0; listed < 2; listed++) {
        QSFParams p = plain();
        (void)fill(2, 1);
        p.adaptive_target = 0.2f;
        p.adaptive_decay = 0.9f;
        p.top_p = listed ? 0.97f : 1;
        for (size_t k = 0; k < N; k++) set[k].key = -set[k].p;
        const size_t n = listed ? reach((double)p.top_p) : N;
        (void)soften(n, 1);
        double all = 0, total = 0, target = 0.2;
        for (size_t k = 0; k < n; k++) all += listed ? exp(set[k].x) : exp(by_id[k].x);
        for (size_t k = 0; k < n; k++) {
            const double d = fabs(set[k].p - target) / 0.3;
            total += exp(5 - 10 * d * d / (1 + d));
        }
        qsf_sampler_seed(sampler, 4);
        const QsfSamplerInput in = { .logits = x, .params = &p };
        const QsfSample got = next(&in);
        const double d = fabs(exp(by_id[got.id].x) / all - target) / 0.3;
        assert_true(fabs((double)got.p / (exp(5 - 10 * d * d / (1 + d)) / total) - 1) < 2e-3);
    }
}

/* Each token of a list is drawn as often as it is likely. */
static void test_draws_are_fair(void **state) {
    (void)state;
    enum { DRAWS = 4000, PARTS = 8 };
    double want[PARTS] = { 0 };
    size_t got[PARTS] = { 0 }, n = N;
    QSFParams p = plain();
    (void)fill(3, 1);
    p.min_p = 1e-9f; /* a list of all */
    for (size_t k = 0; k < n; k++) want[k * PARTS / N] += by_id[k].p;
    const QsfSamplerInput in = { .logits = x, .params = &p };
    for (int i = 0; i < DRAWS; i++) got[(size_t)next(&in).id * PARTS / N]++;
    for (size_t k = 0; k < PARTS; k++)
        assert_true(fabs((double)got[k] - want[k] * DRAWS) < 6 * sqrt(want[k] * DRAWS));
}

/* Words of the set of allowed tokens that are full, empty, mixed, and not whole. */
static void test_sets_of_allowed_tokens(void **state) {
    (void)state;
    static uint64_t allowed[QSF_TOKEN_SET_WORDS(N)];
    QSFParams p = plain();
    (void)fill(4, 1);
    for (size_t i = 0; i < QSF_TOKEN_SET_WORDS(N); i++)
        allowed[i] = i % 3 == 0 ? 0 : i % 3 == 1 ? UINT64_MAX : 0x8000F00F12345671u * (i + 1);
    size_t n = 0;
    double all = 0;
    for (size_t i = 0; i < N; i++) {
        if (!(allowed[i / 64] >> (i % 64) & 1)) continue;
        n++;
        all += by_id[i].p;
    }
    const QsfSamplerInput in = { .logits = x, .params = &p, .allowed = allowed };
    for (int i = 0; i < 50; i++) {
        const QsfSample got = next(&in);
        assert_int_equal(got.kept, n);
        assert_true(allowed[got.id / 64] >> (got.id % 64) & 1);
        assert_true(fabs((double)got.p / (by_id[got.id].p / all) - 1) < 1e-4);
    }
}

/* NaN is never chosen, whatever is left. */
static void test_no_numbers(void **state) {
    (void)state;
    static const float sigma[] = { 0, 1 };
    QsfErr err = { 0 };
    QsfSample out;
    for (size_t k = 0; k < N; k++) x[k] = NAN;
    for (size_t i = 0; i < 2; i++) {
        QSFParams p = plain();
        p.top_n_sigma = sigma[i];
        const QsfSamplerInput in = { .logits = x, .params = &p };
        assert_int_equal(qsf_sampler_next(sampler, &in, &out, &err), QSF_E_RUNTIME);
        p.temperature = 0;
        assert_int_equal(qsf_sampler_next(sampler, &in, &out, &err), QSF_E_RUNTIME);
    }
    x[N - 1] = 1;
    QSFParams p = plain();
    p.typical = 0.9f;
    p.top_n_sigma = 1;
    const QsfSamplerInput in = { .logits = x, .params = &p };
    assert_int_equal(next(&in).id, N - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_top_p),
        cmocka_unit_test(test_typical),
        cmocka_unit_test(test_typical_of_equal_logits),
        cmocka_unit_test(test_dynamic_temperature),
        cmocka_unit_test(test_adaptive_p),
        cmocka_unit_test(test_draws_are_fair),
        cmocka_unit_test(test_sets_of_allowed_tokens),
        cmocka_unit_test(test_no_numbers),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
