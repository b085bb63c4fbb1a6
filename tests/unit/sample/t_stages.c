/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every filter of the sampler compared with its published definition, computed in double by sorting all. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/harness/stage_rig.h"

typedef struct Token {
    double x, p;
    int32_t id;
} Token;

/* The candidates of a definition. */
typedef struct Set {
    Token t[N];
    size_t n;
} Set;

static int best_first(const void *a, const void *b) {
    const Token *p = a, *q = b;
    if (p->x != q->x) return p->x > q->x ? -1 : 1;
    return p->id < q->id ? -1 : 1;
}

static void soften(Set *s, double temperature) {
    double total = 0;
    qsort(s->t, s->n, sizeof *s->t, best_first);
    for (size_t i = 0; i < s->n; i++) total += exp((s->t[i].x - s->t[0].x) / temperature);
    for (size_t i = 0; i < s->n; i++) s->t[i].p = exp((s->t[i].x - s->t[0].x) / temperature) / total;
}

static void fill(Set *s, const float *x) {
    s->n = N;
    for (int32_t i = 0; i < N; i++) s->t[i] = (Token){ (double)x[i], 0, i };
    soften(s, 1);
}

/* Draws, and compares the number of candidates and the probability of the one that was drawn. A candidate at
 * the very limit may be in or out. */
static void compare(const Set *want, const float *x, const QSFParams *p) {
    const QsfSamplerInput in = { .logits = x, .params = p };
    for (int i = 0; i < 4; i++) {
        const QsfSample got = next(&in);
        size_t at = 0;
        if (labs((long)got.kept - (long)want->n) > 1) fail_msg("kept %u, expected %zu", got.kept, want->n);
        while (at < want->n && want->t[at].id != got.id) at++;
        assert_true(at < want->n || got.kept > want->n);
        if (at < want->n) assert_true(fabs((double)got.p - want->t[at].p) <= 1e-4 + 0.03 * want->t[at].p);
    }
}

static double entropy(const Set *s) {
    double h = 0;
    for (size_t i = 0; i < s->n; i++) h -= s->t[i].p > 0 ? s->t[i].p * log(s->t[i].p) : 0;
    return h;
}

static double center;
static int typical_first(const void *a, const void *b) {
    const double x = fabs(-log(((const Token *)a)->p) - center),
                 y = fabs(-log(((const Token *)b)->p) - center);
    return x < y ? -1 : x > y;
}

/* Meister et al. 2022, equation 9. */
static void typical(Set *s, double mass) {
    double sum = 0;
    size_t n = 0;
    center = entropy(s);
    qsort(s->t, s->n, sizeof *s->t, typical_first);
    while (n < s->n && sum < mass) sum += s->t[n++].p;
    s->n = n;
    soften(s, 1);
}

static void typical_is_the_published_one(void **state) {
    (void)state;
    static const float masses[] = { 0.05f, 0.2f, 0.5f, 0.9f, 0.99f };
    float x[N];
    Set s;
    for (uint64_t i = 0; i < 40; i++) {
        QSFParams p = plain();
        random_logits(x, i, i % 2 ? 0.4 : 3);
        p.typical = masses[i % 5];
        fill(&s, x);
        if (i % 4 == 0) { /* of a list */
            p.top_k = 50;
            s.n = 50;
            soften(&s, 1);
        }
        typical(&s, (double)p.typical);
        compare(&s, x, &p);
    }
}

/* Tang et al. 2024: the limit is max - n sigma, sigma that of all logits. */
static void top_n_sigma_is_the_published_one(void **state) {
    (void)state;
    static const float ns[] = { 0.5f, 1, 1.5f, 3 };
    float x[N];
    Set s;
    for (uint64_t i = 0; i < 24; i++) {
        QSFParams p = plain();
        double mean = 0, variance = 0;
        random_logits(x, i, i % 2 ? 0.4 : 3);
        p.top_n_sigma = ns[i % 4];
        fill(&s, x);
        for (size_t j = 0; j < N; j++) mean += (double)x[j] / N;
        for (size_t j = 0; j < N; j++) variance += ((double)x[j] - mean) * ((double)x[j] - mean) / N;
        const double limit = s.t[0].x - (double)p.top_n_sigma * sqrt(variance);
        while (s.t[s.n - 1].x < limit) s.n--;
        soften(&s, 1);
        compare(&s, x, &p);
    }
}

/* All tokens with the threshold but the last of them leave; with probability xtc. */
static void xtc_is_the_published_one(void **state) {
    (void)state;
    float x[N];
    Set s;
    for (uint64_t i = 0; i < 24; i++) {
        QSFParams p = plain();
        size_t above = 0;
        random_logits(x, i, 3);
        p.xtc = 1;
        p.xtc_threshold = i % 3 == 0 ? 0.02f : 0.1f;
        fill(&s, x);
        if (i % 2) {
            p.top_k = 30;
            s.n = 30;
            soften(&s, 1);
        }
        while (above < s.n && s.t[above].p >= (double)p.xtc_threshold) above++;
        if (above > 1) memmove(s.t, s.t + above - 1, (s.n - above + 1) * sizeof *s.t);
        if (above > 1) s.n -= above - 1;
        soften(&s, 1);
        compare(&s, x, &p);
    }
    float two[N] = { [7] = 20, [9] = 20.5f };
    size_t seven = 0;
    QSFParams p = plain();
    p.xtc = 0.3f;
    p.xtc_threshold = 0.1f;
    p.top_k = 1; /* comes before: nothing is left to exclude */
    const QsfSamplerInput in = { .logits = two, .params = &p };
    for (int i = 0; i < 50; i++) assert_int_equal(next(&in).id, 9);
    p.top_k = 0;
    p.temperature = 0; /* without xtc always 9 */
    for (int i = 0; i < 2000; i++) seven += next(&in).id == 7;
    assert_true(seven > 500 && seven < 700);
    p.xtc_threshold = 0.51f;
    for (int i = 0; i < 50; i++) assert_int_equal(next(&in).id, 9);
}

/* temperature + or - range, by the entropy as a part of the largest. */
static void the_temperature_follows_the_entropy(void **state) {
    (void)state;
    float x[N];
    Set s;
    for (uint64_t i = 0; i < 24; i++) {
        QSFParams p = plain();
        random_logits(x, i, i % 2 ? 0.5 : 2);
        p.temperature = i % 3 == 0 ? 0.4f : 1.2f;
        p.dynatemp = i % 3 == 1 ? 0.3f : 0.7f;
        p.dynatemp_exponent = i % 4 < 2 ? 1 : 2.5f;
        p.top_k = i % 5 == 0 ? 20 : 0;
        fill(&s, x);
        s.n = p.top_k > 0 ? 20 : N;
        soften(&s, 1);
        const double t = (double)p.temperature, range = (double)p.dynatemp, low = t > range ? t - range : 0;
        const double part = pow(entropy(&s) / log((double)s.n), (double)p.dynatemp_exponent);
        soften(&s, low + (t + range - low) * part);
        compare(&s, x, &p);
    }
}

/* Basu et al. 2021: version 2 keeps tokens with a surprise of at most mu, and mu follows the error. */
static void mirostat_two_is_the_published_one(void **state) {
    (void)state;
    float x[N];
    Set s;
    QSFParams p = plain();
    p.mirostat = 2;
    p.mirostat_tau = 3;
    p.mirostat_eta = 0.2f;
    p.top_k = 1; /* has no effect */
    double mu = 6;
    qsf_sampler_seed(sampler, 1);
    for (uint64_t i = 0; i < 200; i++) {
        random_logits(x, i, 1.5);
        fill(&s, x);
        size_t n = 1;
        double all = s.t[0].p;
        while (n < N && -log2(s.t[n].p) <= mu) all += s.t[n++].p;
        const QsfSamplerInput in = { .logits = x, .params = &p };
        const QsfSample got = next(&in);
        assert_true(labs((long)got.kept - (long)n) <= 1);
        size_t at = 0;
        while (s.t[at].id != got.id) at++;
        assert_true(fabs((double)got.p - s.t[at].p / all) < 1e-3);
        mu -= (double)p.mirostat_eta * (-log2(s.t[at].p) - (double)p.mirostat_tau);
    }
}

/* Version 1 estimates how many tokens there are from the first 100, by Zipf's law. */
static void mirostat_one_is_the_published_one(void **state) {
    (void)state;
    float x[N];
    Set s;
    QSFParams p = plain();
    p.mirostat = 1;
    p.mirostat_tau = 3;
    p.mirostat_eta = 0.1f;
    double mu = 6;
    qsf_sampler_seed(sampler, 2);
    for (uint64_t i = 0; i < 300; i++) {
        random_logits(x, i, 1.5);
        fill(&s, x);
        double tb = 0, tt = 0;
        for (size_t j = 0; j < 99; j++) {
            const double t = log((double)(j + 2) / (double)(j + 1));
            tb += t * log(s.t[j].p / s.t[j + 1].p);
            tt += t * t;
        }
        const double zipf = tb / tt, e = zipf - 1;
        const double k = pow(e * exp2(mu) / (1 - pow(N, -e)), 1 / zipf);
        const size_t n = k < 1 ? 1 : k < N ? (size_t)(k + 0.5) : N;
        const QsfSamplerInput in = { .logits = x, .params = &p };
        const QsfSample got = next(&in);
        assert_true(labs((long)got.kept - (long)n) <= 1);
        size_t at = 0;
        while (s.t[at].id != got.id) at++;
        mu -= (double)p.mirostat_eta * (-log2(s.t[at].p) - (double)p.mirostat_tau);
    }
}

/* MrJackSpade/adaptive-p-docs, with the constants of ggml-org/llama.cpp. */
static void adaptive_p_is_the_published_one(void **state) {
    (void)state;
    float x[N];
    Set s, was;
    QSFParams p = plain();
    p.adaptive_target = 0.3f;
    p.adaptive_decay = 0.9f;
    p.min_p = 0.05f;
    double sum = 0.3 / 0.1, weight = 1 / 0.1;
    qsf_sampler_seed(sampler, 3);
    for (uint64_t i = 0; i < 100; i++) {
        random_logits(x, i, 2);
        fill(&s, x);
        while (s.t[s.n - 1].p < 0.05 * s.t[0].p) s.n--;
        soften(&s, 1);
        double target = 2 * 0.3 - sum / weight;
        target = target < 0 ? 0 : target > 1 ? 1 : target;
        was = s;
        for (size_t j = 0; j < s.n; j++) {
            const double d = fabs(s.t[j].p - target) / 0.3;
            s.t[j].x = 5 - 10 * d * d / (1 + d);
        }
        soften(&s, 1);
        const QsfSamplerInput in = { .logits = x, .params = &p };
        const QsfSample got = next(&in);
        size_t at = 0, before = 0;
        while (s.t[at].id != got.id) at++;
        while (was.t[before].id != got.id) before++;
        assert_int_equal(got.kept, s.n);
        assert_true(fabs((double)got.p - s.t[at].p) < 1e-3);
        sum = was.t[before].p + 0.9 * sum;
        weight = 1 + 0.9 * weight;
    }
}

static void least_takes_the_lowest_above_the_floor(void **state) {
    (void)state;
    float x[N];
    Set s;
    for (uint64_t i = 0; i < 30; i++) {
        QSFParams p = plain();
        random_logits(x, i, 2);
        p.least = i % 3 == 0 ? 0.9f : i % 3 == 1 ? 0.001f : 0.02f;
        p.temperature = i % 2 ? 0 : 1;
        fill(&s, x);
        size_t at = 0;
        while (at + 1 < N && s.t[at + 1].p >= (double)p.least) at++;
        const QsfSamplerInput in = { .logits = x, .params = &p };
        const QsfSample got = next(&in);
        assert_int_equal(got.id, s.t[at].id);
        assert_int_equal(got.kept, 1);
    }
}

/* A stricter parameter never keeps more. */
static void stages_are_monotone(void **state) {
    (void)state;
    float x[N];
    for (uint64_t i = 0; i < 20; i++) {
        uint32_t last[5] = { N, N, N, N, N };
        random_logits(x, i, 1 + (double)(i % 3));
        for (int step = 1; step < 20; step++) {
            const float part = (float)step / 20;
            QSFParams p[5] = { plain(), plain(), plain(), plain(), plain() };
            p[0].top_k = N - 20 * step;
            p[1].top_p = 1 - part;
            p[2].min_p = part;
            p[3].top_n_sigma = 4 * (1 - part);
            p[4].typical = 1 - part;
            for (int k = 0; k < 5; k++) {
                const QsfSamplerInput in = { .logits = x, .params = &p[k] };
                const uint32_t kept = next(&in).kept;
                assert_true(kept <= last[k]);
                last[k] = kept;
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(typical_is_the_published_one),
        cmocka_unit_test(top_n_sigma_is_the_published_one),
        cmocka_unit_test(xtc_is_the_published_one),
        cmocka_unit_test(the_temperature_follows_the_entropy),
        cmocka_unit_test(mirostat_two_is_the_published_one),
        cmocka_unit_test(mirostat_one_is_the_published_one),
        cmocka_unit_test(adaptive_p_is_the_published_one),
        cmocka_unit_test(least_takes_the_lowest_above_the_floor),
        cmocka_unit_test(stages_are_monotone),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
