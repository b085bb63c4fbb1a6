/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sampler compared with a simple one that sorts everything and computes in double. */
#include <math.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/sample/rng.h"
#include "src/sample/sampler.h"
#include "tests/harness/qsf_test.h"

#define N 1000

static qk_table table;
static QsfLedger ledger;

typedef struct Plain {
    double x, p;
    int32_t id;
} Plain;

static int best_first(const void *a, const void *b) {
    const Plain *p = a, *q = b;
    if (p->x != q->x) return p->x > q->x ? -1 : 1;
    return p->id < q->id ? -1 : 1;
}

/* Survivors of the chain with their probabilities, most likely first; returns their number. */
static size_t plain_chain(Plain *c, const float *logits, size_t n, const QSFParams *p) {
    for (size_t i = 0; i < n; i++) c[i] = (Plain){ (double)logits[i], 0, (int32_t)i };
    qsort(c, n, sizeof *c, best_first);
    if (p->top_k > 0 && (size_t)p->top_k < n) n = (size_t)p->top_k;
    double total = 0, sum = 0;
    for (size_t i = 0; i < n; i++) total += exp(c[i].x - c[0].x);
    if (p->top_p < 1.0f) {
        size_t keep = 0;
        while (keep < n && sum < (double)p->top_p * total) sum += exp(c[keep++].x - c[0].x);
        n = keep;
    }
    while (n > 1 && exp(c[n - 1].x - c[0].x) < (double)p->min_p * (1 - 1e-6)) n--;
    total = 0;
    for (size_t i = 0; i < n; i++) total += exp((c[i].x - c[0].x) / (double)p->temperature);
    for (size_t i = 0; i < n; i++) c[i].p = exp((c[i].x - c[0].x) / (double)p->temperature) / total;
    return n;
}

static QsfSampler *make(uint32_t n) {
    QsfSampler *s;
    QsfErr err = { 0 };
    assert_int_equal(qsf_sampler_create(&s, n, &table, &ledger, &err), QSF_OK);
    return s;
}

static void random_logits(float *x, size_t n, uint64_t seed, double spread) {
    QsfRng r;
    qsf_rng_seed(&r, seed);
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (int j = 0; j < 12; j++) sum += qsf_rng_unit(&r);
        x[i] = (float)((sum - 6) * spread);
    }
}

static QSFParams params(float temperature, int32_t k, float top_p, float min_p) {
    return (QSFParams){ .temperature = temperature,
                        .top_p = top_p,
                        .min_p = min_p,
                        .repeat_penalty = 1,
                        .top_k = k,
                        .repeat_last_n = 64 };
}

static void next(QsfSampler *s, const float *logits, const QSFParams *p, const int32_t *recent,
                 size_t n_recent, const int32_t *banned, size_t n_banned, QsfSample *out) {
    const QsfSamplerInput in = { .logits = logits,
                                 .params = p,
                                 .recent = recent,
                                 .n_recent = n_recent,
                                 .banned = banned,
                                 .n_banned = n_banned };
    QsfErr err = { 0 };
    assert_int_equal(qsf_sampler_next(s, &in, out, &err), QSF_OK);
}

static void the_chain_keeps_what_the_plain_one_keeps(void **state) {
    (void)state;
    static const float temps[] = { 0.1f, 0.7f, 1.0f, 2.5f };
    static const int32_t ks[] = { 0, 1, 2, 40, 999, 1000, 5000 };
    static const float ps[] = { 1.0f, 0.9f, 0.5f, 0.05f, 0.999f }, ms[] = { 0.0f, 0.05f, 0.5f, 1.0f };
    float x[N];
    Plain plain[N];
    QsfSampler *s = make(N);
    for (size_t i = 0; i < 4 * 7 * 5 * 4; i++) {
        QSFParams p = params(temps[i % 4], ks[i / 4 % 7], ps[i / 28 % 5], ms[i / 140]);
        random_logits(x, N, i, i % 3 == 0 ? 0.3 : 3);
        size_t n = plain_chain(plain, x, N, &p);
        qsf_sampler_seed(s, i);
        for (int draw = 0; draw < 5; draw++) {
            QsfSample got;
            next(s, x, &p, NULL, 0, NULL, 0, &got);
            /* A logit exactly at the limit of top-p may be inside or outside. */
            if (labs((long)got.kept - (long)n) > 1)
                fail_msg("case %zu: kept %u, expected %zu", i, got.kept, n);
            size_t at = 0;
            while (at < n && plain[at].id != got.id) at++;
            assert_true(at < n || got.kept > n);
            if (at < n) assert_true(fabs((double)got.p - plain[at].p) <= 1e-4 + 0.02 * plain[at].p);
        }
    }
    qsf_sampler_destroy(s);
}

static void draws_follow_the_distribution(void **state) {
    (void)state;
    static const QSFParams variants[] = {
        { .temperature = 0.8f, .top_p = 0.95f, .repeat_penalty = 1, .top_k = 10 },
        { .temperature = 1.3f, .top_p = 0.8f, .repeat_penalty = 1 },
        { .temperature = 1.0f, .top_p = 1, .repeat_penalty = 1 },
        { .temperature = 1.0f, .top_p = 1, .min_p = 0.1f, .repeat_penalty = 1 },
    };
    enum { SMALL = 20, DRAWS = 50000 };
    float x[SMALL];
    Plain plain[SMALL];
    QsfSampler *s = make(SMALL);
    random_logits(x, SMALL, 5, 1.2);
    for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
        size_t count[SMALL] = { 0 };
        double chi2 = 0;
        size_t n = plain_chain(plain, x, SMALL, &variants[v]);
        qsf_sampler_seed(s, 42);
        for (int i = 0; i < DRAWS; i++) {
            QsfSample got;
            next(s, x, &variants[v], NULL, 0, NULL, 0, &got);
            count[got.id]++;
        }
        size_t seen = 0;
        for (size_t i = 0; i < n; i++) {
            double want = plain[i].p * DRAWS, d = (double)count[plain[i].id] - want;
            seen += count[plain[i].id];
            if (want > 1) chi2 += d * d / want;
        }
        assert_int_equal(seen, DRAWS);
        assert_true(chi2 < 50); /* at most 19 degrees of freedom: chance below 1e-4 */
    }
    qsf_sampler_destroy(s);
}

static void equal_seeds_give_equal_draws(void **state) {
    (void)state;
    float x[N];
    int32_t first[100];
    QSFParams p = params(1, 0, 1, 0);
    QsfSampler *s = make(N);
    random_logits(x, N, 9, 1);
    for (int round = 0; round < 3; round++) {
        int same = 0;
        qsf_sampler_seed(s, round == 2 ? 124 : 123);
        for (int i = 0; i < 100; i++) {
            QsfSample got;
            next(s, x, &p, NULL, 0, NULL, 0, &got);
            if (round == 0)
                first[i] = got.id;
            else
                same += first[i] == got.id;
        }
        if (round == 1) assert_int_equal(same, 100);
        if (round == 2) assert_true(same < 50);
    }
    qsf_sampler_destroy(s);
}

/* First outputs of xoshiro256** seeded by splitmix64 with seed 0, computed from the published algorithms. */
static void the_generator_is_the_published_one(void **state) {
    (void)state;
    static const uint64_t want[] = { 0x99ec5f36cb75f2b4u, 0xbf6e1f784956452au, 0x1a5f849d4933e6e0u };
    QsfRng r;
    qsf_rng_seed(&r, 0);
    for (size_t i = 0; i < 3; i++) assert_true(qsf_rng_next(&r) == want[i]);
    for (int i = 0; i < 1000; i++) {
        double u = qsf_rng_unit(&r);
        assert_true(u >= 0 && u < 1);
    }
}

static void argmax_ties_nan_and_bans(void **state) {
    (void)state;
    float x[6] = { NAN, 2, 5, 5, -INFINITY, 1 };
    int32_t banned[] = { 2, 3, 77, -1 };
    QSFParams cold = params(0, 40, 0.9f, 0), hot = params(5, 0, 1, 0);
    QsfSample got;
    QsfSampler *s = make(6);
    next(s, x, &cold, NULL, 0, NULL, 0, &got);
    assert_int_equal(got.id, 2);
    assert_true(got.p == 1.0f && got.entropy == 0.0f && got.kept == 1);
    next(s, x, &cold, NULL, 0, banned, 4, &got);
    assert_int_equal(got.id, 1);
    for (int i = 0; i < 2000; i++) {
        hot.top_k = i % 2 == 0 ? 0 : 5;
        hot.top_p = i % 4 < 2 ? 1.0f : 0.99f;
        next(s, x, &hot, NULL, 0, banned, 4, &got);
        assert_true(got.id == 1 || got.id == 5);
    }
    qsf_sampler_destroy(s);
}

static void the_penalty_applies_once_and_within_its_window(void **state) {
    (void)state;
    float x[4] = { 4, 3, -1, -2 };
    float before[4];
    int32_t recent[] = { 3, 0, 0, 0, 2 };
    QSFParams p = params(0, 0, 1, 0);
    QsfSample got;
    QsfSampler *s = make(4);
    memcpy(before, x, sizeof x);
    p.repeat_penalty = 1.3f; /* 4 / 1.3 = 3.08 > 3, but 4 / 1.3^3 < 3 */
    next(s, x, &p, recent, 5, NULL, 0, &got);
    assert_int_equal(got.id, 0);
    p.repeat_penalty = 1.5f;
    next(s, x, &p, recent, 5, NULL, 0, &got);
    assert_int_equal(got.id, 1);
    p.repeat_last_n = 1; /* only id 2 */
    next(s, x, &p, recent, 5, NULL, 0, &got);
    assert_int_equal(got.id, 0);
    p.repeat_last_n = -1;
    next(s, x, &p, recent, 5, NULL, 0, &got);
    assert_int_equal(got.id, 1);
    /* A negative logit is multiplied: id 3 drops from -2 to -20, so id 2 is next. */
    p.repeat_penalty = 10;
    int32_t tail[] = { 3 }, banned[] = { 0, 1 };
    float y[4] = { 4, 3, -3, -2 };
    next(s, y, &p, tail, 1, banned, 2, &got);
    assert_int_equal(got.id, 2);
    assert_memory_equal(before, x, sizeof x);
    qsf_sampler_destroy(s);
}

/* Whatever the settings are, nothing outside the set is chosen; a set without tokens is an error. */
static void only_the_allowed_set(void **state) {
    (void)state;
    enum { M = 130 };
    float x[M];
    uint64_t allowed[QSF_TOKEN_SET_WORDS(M)] = { 0 };
    const int32_t banned[] = { 70, 3 };
    static const float temps[] = { 0, 0.5f, 1, 2 };
    QsfSampler *s = make(M);
    QsfErr err = { 0 };
    QsfSample got;
    random_logits(x, M, 11, 2);
    x[5] = x[69] = 50; /* the likeliest */
    allowed[0] = 1u << 3 | 1u << 7;
    allowed[1] = 1u << 6 | 1u << 8;
    allowed[2] = 1u << 1;
    for (int i = 0; i < 400; i++) {
        const QSFParams p = params(temps[i % 4], i / 4 % 2 ? 40 : 0, i / 8 % 2 ? 0.9f : 1,
                                   i / 16 % 2 ? 0.1f : 0);
        const QsfSamplerInput in = {
            .logits = x, .params = &p, .allowed = allowed, .banned = banned, .n_banned = i / 32 % 2 ? 2 : 0
        };
        assert_int_equal(qsf_sampler_next(s, &in, &got, &err), QSF_OK);
        assert_true(got.id == 7 || got.id == 72 || got.id == 129 ||
                    (in.n_banned == 0 && (got.id == 3 || got.id == 70)));
        assert_true(got.kept >= 1 && got.kept <= 5 - in.n_banned);
    }
    memset(allowed, 0, sizeof allowed);
    for (int i = 0; i < 4; i++) {
        const QSFParams p = params(temps[i], 40, 0.9f, 0);
        QsfSamplerInput in = { .logits = x, .params = &p, .allowed = allowed };
        qsf_err_clear(&err);
        assert_int_equal(qsf_sampler_next(s, &in, &got, &err), QSF_E_RUNTIME);
        assert_non_null(strstr(err.msg, "allowed"));
        allowed[0] = 1u << 3; /* the only one is banned */
        in.banned = banned;
        in.n_banned = 2;
        assert_int_equal(qsf_sampler_next(s, &in, &got, NULL), QSF_E_RUNTIME);
        allowed[0] = 0;
    }
    qsf_sampler_destroy(s);
}

static void entropy_is_that_of_the_distribution(void **state) {
    (void)state;
    enum { M = 256 };
    float x[M];
    QsfSample got;
    QsfSampler *s = make(M);
    QSFParams p = params(1, 1, 1, 0);
    for (int i = 0; i < M; i++) x[i] = 3;
    next(s, x, &p, NULL, 0, NULL, 0, &got);
    assert_true(fabs((double)got.entropy - 8) < 1e-3);
    random_logits(x, M, 3, 2);
    p.temperature = 0.5f;
    double total = 0, h = 0;
    for (int i = 0; i < M; i++) total += exp((double)x[i] / 0.5);
    for (int i = 0; i < M; i++) h -= exp((double)x[i] / 0.5) / total * log2(exp((double)x[i] / 0.5) / total);
    next(s, x, &p, NULL, 0, NULL, 0, &got);
    assert_true(fabs((double)got.entropy - h) < 1e-3);
    p.temperature = 1e-30f; /* practically 0: no overflow, no division by it */
    next(s, x, &p, NULL, 0, NULL, 0, &got);
    assert_true(got.entropy >= 0 && got.entropy < 1e-3 && got.p > 0.999f);
    qsf_sampler_destroy(s);
}

static void memory_is_charged(void **state) {
    (void)state;
    QsfLedger small;
    QsfErr err = { 0 };
    QsfSampler *s;
    qsf_ledger_init(&small, 1000);
    assert_int_equal(qsf_sampler_create(&s, N, &table, &small, &err), QSF_E_BUDGET);
    assert_null(s);
    qsf_ledger_set_limit(&small, 0);
    qsf_err_clear(&err);
    assert_int_equal(qsf_sampler_create(&s, N, &table, &small, &err), QSF_OK);
    assert_true(small.used[QSF_MEM_LOGITS] >= N * (2 * sizeof(float) + sizeof(qk_pick)));
    qsf_sampler_destroy(s);
    assert_int_equal(small.total, 0);
    qsf_ledger_destroy(&small);
}

/* Prints the time per token; the bound only catches an accident such as sorting the vocabulary. */
static void a_large_vocabulary_is_cheap(void **state) {
    (void)state;
    enum { BIG = 32000, ROUNDS = 50 };
    float *x = malloc(BIG * sizeof *x);
    QsfSampler *s = make(BIG);
    const QSFParams kinds[] = { params(0, 40, 0.9f, 0), params(0.7f, 40, 0.9f, 0), params(0.7f, 0, 0.9f, 0),
                                params(0.7f, 0, 1, 0.05f), params(0.7f, 0, 1, 0) };
    static const char *const names[] = { "greedy", "top-k 40, top-p", "top-p alone", "min-p alone",
                                         "no filter" };
    assert_non_null(x);
    random_logits(x, BIG, 1, 3);
    for (size_t k = 0; k < 5; k++) {
        QsfSample got;
        const uint64_t t = qsf_test_cpu_ns();
        for (int i = 0; i < ROUNDS; i++) next(s, x, &kinds[k], NULL, 0, NULL, 0, &got);
        const double us = (double)(qsf_test_cpu_ns() - t) / 1e3 / ROUNDS;
        printf("sampler, 32000 tokens, %s: %.0f us\n", names[k], us);
        assert_true(us < 20000);
    }
    qsf_sampler_destroy(s);
    free(x);
}

/* What the model says does not depend on parameters, and costs less than a draw. */
static void a_look_at_a_token(void **state) {
    (void)state;
    enum { BIG = 262144, ROUNDS = 20 };
    const QSFParams kinds[] = { params(0, 0, 1, 0),       params(1, 0, 1, 0),    params(1, 40, 0.9f, 0),
                                params(0.7f, 0, 0.9f, 0), params(0.7f, 0, 1, 0), params(1, 0, 0.999999f, 0) };
    float *x = malloc(BIG * sizeof *x);
    QsfSampler *s = make(BIG);
    assert_non_null(x);
    random_logits(x, BIG, 1, 3);
    QSFToken plain, t;
    qsf_sampler_look(s, x, 5, -1, QSF_CANDIDATES, &plain);
    assert_int_equal(plain.n, QSF_CANDIDATES);
    assert_true(plain.id == 5 && plain.p > 0 && plain.p < plain.top[0].p);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        QsfSample got, again;
        uint64_t ns = 0;
        for (int i = 0; i < ROUNDS; i++) {
            qsf_sampler_seed(s, 9);
            next(s, x, &kinds[k], NULL, 0, NULL, 0, &got);
            const uint64_t from = qsf_now_ns();
            qsf_sampler_look(s, x, 5, got.plain, QSF_CANDIDATES, &t);
            ns += qsf_now_ns() - from;
            assert_memory_equal(&t, &plain, sizeof t);
        }
        printf("look, 262144 tokens, temperature %.1f: %.0f us\n", (double)kinds[k].temperature,
               (double)ns / 1e3 / ROUNDS);
        next(s, x, &kinds[k], NULL, 0, NULL, 0, &got);
        qsf_sampler_seed(s, 9);
        next(s, x, &kinds[k], NULL, 0, NULL, 0, &again);
        qsf_sampler_look(s, x, 5, again.plain, QSF_CANDIDATES, &t);
        next(s, x, &kinds[k], NULL, 0, NULL, 0, &again);
        assert_true(got.id == again.id && got.p == again.p);
    }
    qsf_sampler_destroy(s);
    free(x);
}

static int setup(void **state) {
    (void)state;
    qk_table_init(&table, qk_cpu_best());
    qsf_ledger_init(&ledger, 0);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_chain_keeps_what_the_plain_one_keeps),
        cmocka_unit_test(draws_follow_the_distribution),
        cmocka_unit_test(equal_seeds_give_equal_draws),
        cmocka_unit_test(the_generator_is_the_published_one),
        cmocka_unit_test(argmax_ties_nan_and_bans),
        cmocka_unit_test(the_penalty_applies_once_and_within_its_window),
        cmocka_unit_test(only_the_allowed_set),
        cmocka_unit_test(entropy_is_that_of_the_distribution),
        cmocka_unit_test(memory_is_charged),
        cmocka_unit_test(a_large_vocabulary_is_cheap),
        cmocka_unit_test(a_look_at_a_token),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
