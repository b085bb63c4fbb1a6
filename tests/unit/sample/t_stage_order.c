/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stages that change logits, the order of stages, and what holds for any mixture of them. */
#include "tests/harness/qsf_test.h"

#include <math.h>

#include "tests/harness/stage_rig.h"

static void penalties_count(void **state) {
    (void)state;
    float x[N] = { 5, 4.9f, 4.8f, -1 };
    for (size_t i = 4; i < N; i++) x[i] = -50;
    const int32_t recent[] = { 3, 0, 0, 1, -5, 100000 };
    QSFParams p = plain();
    p.presence = 0.5f;
    p.frequency = 0.25f;
    p.repeat_penalty = 1.1f;
    /* CTRL first, then what is subtracted. */
    const double want[] = { 5 / 1.1 - 0.5 - 2 * 0.25, 4.9 / 1.1 - 0.75, 4.8, -1.1 - 0.75 };
    for (int order = 0; order < 2; order++) {
        char why[200];
        const char *text = order == 0 ? "default" : "top-k,penalties,temperature"; /* of a list */
        assert_true(qsf_samplers_parse(text, p.samplers, why, sizeof why));
        p.top_k = order == 0 ? 0 : 10;
        p.temperature = order == 0 ? 1 : 0.5f;
        double sum = 0;
        for (int i = 0; i < 4; i++) sum += exp(want[i] / (double)p.temperature);
        const QsfSamplerInput in = { .logits = x, .params = &p, .recent = recent, .n_recent = 6 };
        for (int i = 0; i < 40; i++) {
            const QsfSample got = next(&in);
            assert_in_range(got.id, 0, 3);
            assert_true(fabs((double)got.p - exp(want[got.id] / (double)p.temperature) / sum) < 1e-4);
        }
    }
    p = plain();
    p.frequency = -10; /* prefers what was used most */
    p.temperature = 0;
    const QsfSamplerInput in = { .logits = x, .params = &p, .recent = recent, .n_recent = 6 };
    assert_int_equal(next(&in).id, 0);
    p.repeat_last_n = 0;
    p.frequency = 10;
    assert_int_equal(next(&in).id, 0);
}

static bool is_breaker(void *arg, int32_t id) { return id == *(const int32_t *)arg; }

/* The probability of a token after dry, of equal logits. */
static double dry_of(const int32_t *ids, size_t n, int32_t id, QSFParams *p, int32_t breaker) {
    float x[N] = { 0 };
    const QsfSamplerInput in = {
        .logits = x, .params = p, .recent = ids, .n_recent = n, .breaks = is_breaker, .arg = &breaker
    };
    double seen = -1;
    for (int i = 0; i < 4000 && seen < 0; i++) {
        const QsfSample got = next(&in);
        if (got.id == id) seen = (double)got.p;
    }
    return seen;
}

/* multiplier * base ^ (length - allowed) for the token that would continue the longest repeated end. */
static void dry_penalizes_what_repeats(void **state) {
    (void)state;
    const int32_t ids[] = { 1, 2, 3, 4, 9, 2, 3, 5, 9, 1, 2, 3 };
    QSFParams p = plain();
    p.dry = 0.5f;
    p.dry_base = 2;
    p.dry_length = 2;
    /* After 1 2 3 came 4 (length 3), after 2 3 came 5 (length 2). */
    const double w4 = exp(-0.5 * 2), w5 = exp(-0.5), total = (N - 2) + w4 + w5;
    assert_true(fabs(dry_of(ids, 12, 4, &p, -1) - w4 / total) < 1e-6);
    assert_true(fabs(dry_of(ids, 12, 5, &p, -1) - w5 / total) < 1e-6);
    assert_true(fabs(dry_of(ids, 12, 6, &p, -1) - 1 / total) < 1e-6);
    /* A breaker 2 leaves only the 3 at the end: too short. */
    assert_true(fabs(dry_of(ids, 12, 4, &p, 2) - 1.0 / N) < 1e-6);
    p.dry_length = 3;
    assert_true(fabs(dry_of(ids, 12, 4, &p, -1) - exp(-0.5) / (N - 1 + exp(-0.5))) < 1e-6);
    /* Long repetitions do not overflow. */
    int32_t same[3000];
    for (int i = 0; i < 3000; i++) same[i] = 7;
    p.dry = 100;
    p.dry_base = 100;
    assert_true(dry_of(same, 3000, 8, &p, -1) > 1.0 / N);
    float x[N] = { [7] = 30 };
    const QsfSamplerInput in = { .logits = x, .params = &p, .recent = same, .n_recent = 3000 };
    for (int i = 0; i < 50; i++) assert_int_not_equal(next(&in).id, 7);
}

static void change(void *arg, float *logits, uint32_t n) {
    assert_int_equal(n, N);
    logits[3] = 60;
    logits[4] = NAN;
    ++*(int *)arg;
}

static bool reject_even(void *arg, int32_t id) {
    (void)arg;
    return id % 2 == 0;
}

static void biases_and_callbacks(void **state) {
    (void)state;
    float x[N] = { [3] = 1, [5] = 9, [8] = 10 };
    const QsfBias bias[] = { { 5, 2 }, { 8, -INFINITY }, { 100000, 5 }, { -1, 5 }, { 7, INFINITY } };
    QSFParams p = plain();
    int calls = 0;
    p.temperature = 0;
    QsfSamplerInput in = { .logits = x, .params = &p, .bias = bias, .n_bias = 4 };
    assert_int_equal(next(&in).id, 5);
    in.n_bias = 5;
    assert_int_equal(next(&in).id, 7);
    in.n_bias = 0;
    in.change = change;
    in.change_arg = &calls;
    assert_int_equal(next(&in).id, 3);
    assert_int_equal(calls, 1);
    in.change = NULL;
    in.rejects = reject_even;
    assert_int_equal(next(&in).id, 5);
    const uint64_t evens[QSF_TOKEN_SET_WORDS(N)] = { 0x5555 };
    QsfErr err = { 0 };
    QsfSample out;
    in.allowed = evens;
    assert_int_equal(qsf_sampler_next(sampler, &in, &out, &err), QSF_E_RUNTIME);
    in.rejects = NULL;
    in.denied = evens;
    assert_int_equal(qsf_sampler_next(sampler, &in, &out, NULL), QSF_E_RUNTIME);
}

static void the_order_is_a_setting(void **state) {
    (void)state;
    uint8_t order[QSF_SAMPLERS_MAX], again[QSF_SAMPLERS_MAX];
    char why[300], text[300];
    assert_true(qsf_samplers_parse("top_k;typ_p,temp,adaptive_p", order, why, sizeof why));
    qsf_samplers_print(order, text, sizeof text);
    assert_string_equal(text, "top-k,typical,temperature,adaptive-p");
    assert_true(qsf_samplers_parse(text, again, why, sizeof why));
    assert_memory_equal(order, again, sizeof order);
    qsf_samplers_print((const uint8_t[QSF_SAMPLERS_MAX]){ 0 }, text, sizeof text);
    assert_string_equal(text, "default");
    assert_false(qsf_samplers_parse("top-k,topx", order, why, sizeof why));
    assert_non_null(strstr(why, "'topx' is unknown"));
    assert_false(qsf_samplers_parse("top-k,min-p,top_k", order, why, sizeof why));
    assert_non_null(strstr(why, "'top-k' comes twice"));
    assert_false(qsf_samplers_parse("constraints", order, why, sizeof why));
    assert_false(qsf_samplers_parse("", order, why, sizeof why));
    /* A filter before the temperature sees other probabilities than after it. */
    float x[N];
    QSFParams p = plain();
    random_logits(x, 4, 2);
    p.temperature = 3;
    p.min_p = 0.1f;
    const QsfSamplerInput in = { .logits = x, .params = &p };
    assert_true(qsf_samplers_parse("min-p,temperature", p.samplers, why, sizeof why));
    const uint32_t before = next(&in).kept;
    assert_true(qsf_samplers_parse("temperature,min-p", p.samplers, why, sizeof why));
    assert_true(next(&in).kept > before);
    assert_true(qsf_samplers_parse("temperature", p.samplers, why, sizeof why));
    assert_int_equal(next(&in).kept, N);
}

/* Everything at once, in any order: something is always left, and probabilities are some. */
static void any_mixture_leaves_something(void **state) {
    (void)state;
    float x[N];
    int32_t recent[100];
    QsfRng r;
    qsf_rng_seed(&r, 99);
    for (int i = 0; i < 3000; i++) {
        QSFParams p = plain();
        const uint64_t bits = qsf_rng_next(&r);
        random_logits(x, (uint64_t)i, i % 7 == 0 ? 0 : i % 7);
        for (int j = 0; j < 100; j++) recent[j] = (int32_t)(qsf_rng_next(&r) % 30);
        if (bits & 1) p.top_k = (int32_t)(bits >> 20 & 63);
        if (bits & 2) p.top_p = 0.01f + 0.98f * (float)qsf_rng_unit(&r);
        if (bits & 4) p.min_p = (float)qsf_rng_unit(&r);
        if (bits & 8) p.typical = 0.01f + 0.98f * (float)qsf_rng_unit(&r);
        if (bits & 16) p.top_n_sigma = (float)(2 * qsf_rng_unit(&r));
        if (bits & 32) p.xtc = (float)qsf_rng_unit(&r);
        if (bits & 32) p.xtc_threshold = (float)qsf_rng_unit(&r) / 2;
        if (bits & 64) p.dynatemp = (float)qsf_rng_unit(&r);
        if (bits & 128) p.mirostat = 1 + (int32_t)(bits >> 30 & 1);
        if (bits & 256) p.adaptive_target = (float)qsf_rng_unit(&r);
        if (bits & 512) p.dry = (float)(2 * qsf_rng_unit(&r));
        if (bits & 1024) p.presence = p.frequency = (float)qsf_rng_unit(&r);
        if (bits & 2048) p.repeat_penalty = 1.5f;
        if ((bits & 0x3000) == 0) p.least = (float)qsf_rng_unit(&r);
        p.temperature = (bits & 0x4000) && (bits & 0x8000) ? 0 : (float)(3 * qsf_rng_unit(&r));
        p.dry_base = 1.75f;
        p.dry_length = 1;
        p.mirostat_tau = 4;
        p.mirostat_eta = 0.3f;
        for (size_t n = 0, stage = 3; (bits & 0x10000) && stage < 12; stage++) /* in reverse */
            if (bits >> (40 + stage) & 1) p.samplers[n++] = (uint8_t)(14 - stage);
        const QsfSamplerInput in = { .logits = x, .params = &p, .recent = recent, .n_recent = 100 };
        const QsfSample got = next(&in);
        assert_in_range(got.id, 0, N - 1);
        assert_true(got.kept >= 1 && got.kept <= N && got.p > 0 && got.p <= 1.0001f);
    }
}

/* What is said about a token is what happened, and changes nothing. */
static void why_tells_what_happened(void **state) {
    (void)state;
    float x[N];
    QSFWhy w;
    size_t rare = 0;
    for (uint64_t i = 0; i < 300; i++) {
        QSFParams p = plain();
        random_logits(x, i, 1 + (double)(i % 3));
        const int32_t recent[] = { 1, 2, 3 };
        p.presence = i % 4 == 0 ? 1.5f : 0;
        p.top_k = i % 2 ? 50 : 0;
        p.min_p = i % 5 == 0 ? 0.3f : 0.01f;
        p.temperature = i % 7 == 0 ? 0 : 0.8f;
        p.mirostat = i % 11 == 0 ? 2 : 0;
        p.mirostat_tau = 4;
        QsfSamplerInput in = { .logits = x, .params = &p, .recent = recent, .n_recent = 3 };
        qsf_sampler_seed(sampler, i);
        const QsfSample without = next(&in);
        in.why = &w;
        in.n_why = 5;
        qsf_sampler_seed(sampler, i);
        const QsfSample with = next(&in);
        assert_true(with.id == without.id && with.p == without.p && with.kept == without.kept);
        QSFToken look, again;
        assert_false(qsf_sampler_look_why(&w, QSF_CANDIDATES, &again)); /* it has only 5 */
        in.n_why = QSF_CANDIDATES;
        qsf_sampler_seed(sampler, i);
        (void)next(&in);
        assert_true(qsf_sampler_look_why(&w, QSF_CANDIDATES, &again));
        qsf_sampler_look(sampler, x, with.id, -1, QSF_CANDIDATES, &look);
        assert_memory_equal(&look, &again, sizeof look);
        in.n_why = 5;
        qsf_sampler_seed(sampler, i);
        (void)next(&in);
        assert_true(w.id == with.id && w.n >= 5 && w.n <= 6 && w.n_vocab == N && w.n_stages >= 1);
        uint32_t at = 0, kept = N;
        while (w.candidate[at] != w.id) at++;
        rare += at == 5;
        for (uint32_t s = 0; s < w.n_stages; s++) {
            float sum = 0;
            for (uint32_t k = 0; k < w.n; k++) sum += w.stage[s].p[k];
            assert_true(w.stage[s].kept <= kept && sum <= 1.001f && w.stage[s].p[at] > 0);
            kept = w.stage[s].kept;
        }
        const QSFWhyStage *last = &w.stage[w.n_stages - 1];
        assert_int_equal(last->kept, with.kept);
        assert_true(fabs((double)last->p[at] - (double)with.p) < 1e-4);
        assert_true((w.random >= 0) == (p.temperature > 0));
        assert_true((w.decided >= 0) == (with.kept == 1));
        if (w.decided > 0) assert_true(w.stage[w.decided].kept == 1 && w.stage[w.decided - 1].kept > 1);
    }
    assert_true(rare > 10);
}

/* Prints the time per token; the bound only catches an accident such as sorting the vocabulary. */
static void a_large_vocabulary_is_cheap(void **state) {
    (void)state;
    const bool emulated = qsf_test_emulated("times");
    enum { BIG = 262144, ROUNDS = 5 };
    float *x = malloc(BIG * sizeof *x);
    QsfSampler *s;
    QsfErr err = { 0 };
    QsfRng r;
    const int32_t recent[] = { 5, 6, 7, 5, 6 };
    assert_non_null(x);
    assert_int_equal(qsf_sampler_create(&s, BIG, &table, &ledger, &err), QSF_OK);
    qsf_rng_seed(&r, 1);
    for (size_t i = 0; i < BIG; i++) {
        x[i] = 0;
        for (int j = 0; j < 6; j++) x[i] += (float)qsf_rng_unit(&r) * 6;
    }
    for (int k = 0; k < 7; k++) {
        QSFParams p = plain();
        p.temperature = 0.8f;
        p.top_k = k == 0 || k > 4 ? 40 : 0;
        p.dry = k == 0 ? 0.8f : 0;
        p.dry_length = 2;
        p.presence = p.frequency = k == 0 ? 0.1f : 0;
        p.top_n_sigma = k == 1 ? 2 : 0;
        p.typical = k == 2 ? 0.9f : 1;
        p.xtc = k == 3 ? 1 : 0;
        p.xtc_threshold = 0.1f;
        p.mirostat = k == 4 ? 2 : 0;
        p.mirostat_tau = 5;
        p.dynatemp = k == 5 ? 0.3f : 0;
        static const char *const names[] = { "penalties, dry", "top-n-sigma", "typical", "xtc",
                                             "mirostat",       "dynatemp",    "why" };
        QSFWhy why;
        const QsfSamplerInput in = { .logits = x,
                                     .params = &p,
                                     .recent = recent,
                                     .n_recent = 5,
                                     .why = k == 6 ? &why : NULL,
                                     .n_why = 8 };
        QsfSample out;
        const uint64_t from = qsf_test_cpu_ns();
        for (int i = 0; i < ROUNDS; i++) assert_int_equal(qsf_sampler_next(s, &in, &out, &err), QSF_OK);
        const double us = (double)(qsf_test_cpu_ns() - from) / 1e3 / ROUNDS;
        printf("sampler, 262144 tokens, %s: %.0f us\n", names[k], us);
        if (!emulated) assert_true(us < 100000);
    }
    qsf_sampler_destroy(s);
    free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(penalties_count),
        cmocka_unit_test(dry_penalizes_what_repeats),
        cmocka_unit_test(biases_and_callbacks),
        cmocka_unit_test(the_order_is_a_setting),
        cmocka_unit_test(any_mixture_leaves_something),
        cmocka_unit_test(why_tells_what_happened),
        cmocka_unit_test(a_large_vocabulary_is_cheap),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
