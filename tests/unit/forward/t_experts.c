/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Routers against a straightforward computation, and bad metadata and tensors of sparse models. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "src/forward/ops/ops.h"
#include "tests/harness/qsf_test.h"

#define N    8
#define USED 3

static QsfModel model;
static QsfForward forward;
static QsfBuffer buffers[2] = { { .width = N, .stride = 16 },
                                { .width = 2 * USED, .stride = 16, .off = 16 } };
static QsfParam params[2] = { { .n = N }, { .n = N, .at = 16 } };
static float columns[32], values[32];

static const float logits[N] = { 0.5f, -1.0f, 2.0f, 0.25f, -0.5f, 1.5f, 3.0f, -2.0f };

/* Runs the step and checks ids and weights. */
static void expect(const QsfRouteStep *r, const float *x, const unsigned *ids, const double *weights) {
    QsfStep s = { .op = QSF_OP_ROUTE, .in = { 0, 0, N }, .out = { { 1, 0, 2 * USED } } };
    s.u.route = *r;
    model.prog.buf = buffers;
    model.prog.n_bufs = 2;
    model.prog.param = params;
    forward.model = &model;
    forward.cols = columns;
    forward.l.n_cols = 1;
    forward.params.mem = values;
    memcpy(columns, x, N * sizeof *x);
    qsf_route(&forward, &s, 0);
    for (unsigned k = 0; k < USED; k++) {
        assert_int_equal((unsigned)columns[16 + k], ids[k]);
        if (weights != NULL && fabs((double)columns[16 + USED + k] - weights[k]) > 1e-6)
            fail_msg("weight %u is %g, expected %g", k, (double)columns[16 + USED + k], weights[k]);
    }
}

static QsfRouteStep plain(QsfGating gating) {
    return (QsfRouteStep){ .gating = gating,
                           .n_expert = N,
                           .n_used = USED,
                           .bias = QSF_NONE,
                           .expert_scale = QSF_NONE,
                           .scale = 1 };
}

static double weight(QsfGating gating, double x) {
    double sum = 0;
    for (unsigned i = 0; i < N; i++) sum += exp((double)logits[i]);
    switch (gating) {
    case QSF_GATING_SOFTMAX: return exp(x) / sum;
    case QSF_GATING_SIGMOID: return 1 / (1 + exp(-x));
    case QSF_GATING_SQRT_SOFTPLUS: return sqrt(log1p(exp(x)));
    default: return x;
    }
}

static void test_gating(void **state) {
    static const unsigned ids[USED] = { 2, 5, 6 };
    (void)state;
    for (QsfGating g = QSF_GATING_SOFTMAX; g < QSF_GATING_N; g++) {
        QsfRouteStep r = plain(g);
        double w[USED], sum = 0;
        for (unsigned k = 0; k < USED; k++) {
            w[k] = weight(g, (double)logits[ids[k]]);
            if (g == QSF_GATING_SOFTMAX_CHOSEN) w[k] = exp(w[k]);
            sum += w[k];
        }
        for (unsigned k = 0; g == QSF_GATING_SOFTMAX_CHOSEN && k < USED; k++) w[k] /= sum;
        expect(&r, logits, ids, w);
        r.norm = true;
        r.scale = 2.5f;
        for (unsigned k = 0; k < USED; k++) w[k] *= g == QSF_GATING_SOFTMAX_CHOSEN ? 2.5 : 2.5 / sum;
        expect(&r, logits, ids, w);
    }
}

/* A bias changes who is chosen, not the weights; a scale changes only the weights. */
static void test_bias(void **state) {
    static const unsigned ids[USED] = { 2, 6, 7 };
    QsfRouteStep r = plain(QSF_GATING_SIGMOID);
    double w[USED];
    (void)state;
    memset(values, 0, sizeof values);
    values[7] = 10;
    for (unsigned i = 0; i < N; i++) values[16 + i] = (float)i;
    r.bias = 0;
    for (unsigned k = 0; k < USED; k++) w[k] = weight(QSF_GATING_SIGMOID, (double)logits[ids[k]]);
    expect(&r, logits, ids, w);
    r.expert_scale = 1;
    for (unsigned k = 0; k < USED; k++) w[k] *= ids[k];
    expect(&r, logits, ids, w);
}

/* Limits: the weights of those that are left are those that a router with fewer experts makes. */
static void test_limits(void **state) {
    /* weights of softmax relative to the best: 2 has e^-1 = 0.37, 5 has e^-1.5 = 0.22 */
    static const struct {
        QsfExpertLimits limits;
        unsigned n, ids[USED];
    } cases[] = {
        { { 3, 0 }, 3, { 2, 5, 6 } },    { { 2, 0 }, 2, { 2, 6, 6 } },    { { 1, 0 }, 1, { 6, 6, 6 } },
        { { 0, 0.3f }, 2, { 2, 6, 6 } }, { { 0, 0.2f }, 3, { 2, 5, 6 } }, { { 0, 1 }, 1, { 6, 6, 6 } },
        { { 2, 0.2f }, 2, { 2, 6, 6 } }, { { 1, 0.2f }, 1, { 6, 6, 6 } }, { { 3, 0.5f }, 1, { 6, 6, 6 } },
    };
    (void)state;
    forward.reduction.reduced = true;
    for (unsigned way = 0; way < 3; way++) {
        QsfRouteStep r = plain(way == 0 ? QSF_GATING_SOFTMAX_CHOSEN : QSF_GATING_SOFTMAX);
        r.norm = way == 1;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const unsigned n = cases[i].n, *ids = cases[i].ids;
            double w[USED] = { 0 }, sum = 0;
            for (unsigned k = 0; k < n; k++) w[k] = weight(QSF_GATING_SOFTMAX, (double)logits[ids[k]]);
            for (unsigned k = 0; k < n; k++) sum += w[k];
            for (unsigned k = 0; k < n && way < 2; k++) w[k] /= sum;
            forward.reduction.quality.experts = cases[i].limits;
            expect(&r, logits, ids, w);
        }
    }
    /* Sigmoids that are nearly equal stay; a bias chooses, but does not weigh. */
    QsfRouteStep r = plain(QSF_GATING_SIGMOID);
    forward.reduction.quality.experts = (QsfExpertLimits){ 0, 0.8f };
    expect(&r, logits, (const unsigned[USED]){ 2, 5, 6 }, NULL);
    memset(values, 0, sizeof values);
    values[7] = 10;
    r.bias = 0;
    expect(&r, logits, (const unsigned[USED]){ 2, 6, 6 }, NULL);
    memset(&forward.reduction, 0, sizeof forward.reduction);
}

/* Pairs of experts: {2, 3} has the sum 2.25 and {4, 5} 1.6, {6, 7} only 1. */
static void test_groups(void **state) {
    static const unsigned ids[USED] = { 2, 3, 5 }, best[USED] = { 2, 3, 6 };
    QsfRouteStep r = plain(QSF_GATING_SIGMOID);
    (void)state;
    r.n_groups = 4;
    r.n_groups_used = 2;
    r.by_logit = true;
    r.group_scores = 2;
    const float x[N] = { 0.5f, -1, 2, 0.25f, 0.1f, 1.5f, 3, -2 };
    expect(&r, x, ids, NULL);
    r.group_scores = 1; /* now {6, 7} is the best one, and {2, 3} the second */
    expect(&r, x, best, NULL);
}

static void test_ties(void **state) {
    static const unsigned ids[USED] = { 0, 1, 2 }, last[USED] = { 0, 1, 7 };
    const QsfRouteStep r = plain(QSF_GATING_SOFTMAX);
    float x[N] = { 0 };
    (void)state;
    expect(&r, x, ids, NULL);
    x[7] = 1;
    expect(&r, x, last, NULL);
}

/* Whatever the logits are, ids are valid and different. */
static void test_invalid_numbers(void **state) {
    float x[N];
    (void)state;
    for (unsigned i = 0; i < N; i++) x[i] = i % 2 == 0 ? NAN : -INFINITY;
    for (QsfGating g = QSF_GATING_SOFTMAX; g < QSF_GATING_N; g++) {
        QsfRouteStep r = plain(g);
        const unsigned some[USED] = { 0, 1, 2 };
        QsfStep s = { .op = QSF_OP_ROUTE, .in = { 0, 0, N }, .out = { { 1, 0, 2 * USED } } };
        s.u.route = r;
        expect(&r, (const float[N]){ 0 }, some, NULL);
        memcpy(columns, x, sizeof x);
        qsf_route(&forward, &s, 0);
        for (unsigned k = 0; k < USED; k++) {
            assert_true(columns[16 + k] >= 0 && columns[16 + k] < N);
            if (k > 0) assert_true(columns[16 + k] > columns[16 + k - 1]);
        }
    }
}

static void test_wrong_metadata(void **state) {
    static const struct {
        const char *name, *override, *part;
    } wrong[] = {
        { "qwen3moe", "qwen3moe.expert_count=null", "qwen3moe.expert_count' is missing" },
        { "qwen3moe", "qwen3moe.expert_count=int:0", "qwen3moe.expert_count' is 0" },
        { "qwen3moe", "qwen3moe.expert_count=int:100000", "qwen3moe.expert_count' is 100000" },
        { "qwen3moe", "qwen3moe.expert_count=int:5", "has the shape" },
        { "qwen3moe", "qwen3moe.expert_used_count=int:0", "expert_used_count' is 0" },
        { "qwen3moe", "qwen3moe.expert_used_count=int:1000", "expert_used_count' is 1000" },
        { "qwen3moe", "qwen3moe.expert_feed_forward_length=int:7", "expert_feed_forward_length" },
        { "dots1", "dots1.expert_gating_func=int:9", "expert_gating_func' is 9" },
        { "dots1", "dots1.expert_weights_scale=float:nan", "expert_weights_scale" },
        { "dots1", "dots1.leading_dense_block_count=int:0", "" },
        { "dots1", "dots1.expert_group_count=int:7", "expert_group_count" },
        { "ernie4_5-moe", "ernie4_5-moe.interleave_moe_layer_step=int:0", "interleave_moe_layer_step' is 0" },
        { "llama4", "llama4.attention.sliding_window=int:0", "sliding_window' of 0" },
    };
    QsfLedger ledger;
    unsigned seen = 0;
    (void)state;
    qsf_ledger_init(&ledger, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char file[128];
        snprintf(file, sizeof file, "architectures/%s/model.gguf", wrong[i].name);
        const char *const overrides[] = { wrong[i].override, NULL }, *path = qsf_test_data(file);
        static QsfModel m;
        QsfErr err = { 0 };
        if (path == NULL) continue;
        seen++;
        if (qsf_model_open(&m, path, overrides, &ledger, &err) == QSF_OK)
            fail_msg("%s: %s was accepted", wrong[i].name, wrong[i].override);
        qsf_test_expect_err(&err, QSF_E_MODEL, wrong[i].part);
        assert_int_equal(ledger.total, 0);
    }
    qsf_ledger_destroy(&ledger);
    if (seen == 0) skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gating),         cmocka_unit_test(test_bias),
        cmocka_unit_test(test_limits),         cmocka_unit_test(test_groups),
        cmocka_unit_test(test_ties),           cmocka_unit_test(test_invalid_numbers),
        cmocka_unit_test(test_wrong_metadata),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
