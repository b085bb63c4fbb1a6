/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Calibration of models that are not llamas: energies of experts compared with sums computed here, and
 * smaller weighted errors of every matrix after quantization. */
#include "tests/harness/source_rig.h"

#include <math.h>

#include "src/convert/calibrate/calibration_run.h"
#include "src/convert/calibrate/tensor_uses.h"
#include "src/convert/pack/pack.h"
#include "tests/harness/gguf_build.h"

enum { N = 120, HIDDEN = 64, FFN = 64, EXPERTS = QSF_TINY_EXPERTS, WIDEST = 128, WINDOW = 32 };

static char model[512], plain[512], weighted[512];
static int32_t ids[N];

static int begin(void **state) {
    (void)state;
    snprintf(model, sizeof model, "%s", qsf_test_tmp("kinds.gguf"));
    snprintf(plain, sizeof plain, "%s", qsf_test_tmp("kinds-plain.qsf"));
    snprintf(weighted, sizeof weighted, "%s", qsf_test_tmp("kinds-weighted.qsf"));
    qsf_ledger_init(&ledger, 0);
    for (int i = 0; i < N; i++) ids[i] = 3 + i * 7919 % 290;
    return 0;
}

static int end(void **state) {
    (void)state;
    unlink(model);
    unlink(plain);
    unlink(weighted);
    qsf_ledger_destroy(&ledger);
    return 0;
}

/* Opens the model; the caller closes rt and frees p. */
static void open_model(QsfRuntime *rt, QsfCalibratePlan *p) {
    QsfErr err = { 0 };
    QsfModel m;
    QsfRuntimeOptions o = { 0 };
    qsf_test_expect_ok(qsf_model_open(&m, model, NULL, &ledger, &err), &err);
    qsf_test_expect_ok(qsf_calibrate_plan(p, &m, WINDOW, &err), &err);
    qsf_model_close(&m);
    qsf_settings_default(&o.settings);
    o.settings.ctx = 64;
    o.settings.threads = 1;
    o.transcript_bytes = qsf_calibrate_run_bytes(p);
    qsf_test_expect_ok(qsf_runtime_open(rt, model, &o, &err), &err);
}

static void calibrate(QsfRuntime *rt, const QsfCalibratePlan *p, QsfCalibration *c) {
    QsfErr err = { 0 };
    const QsfCalibrateRun r = { .rt = rt, .plan = p, .ids = ids, .n = N, .bos = -1 };
    qsf_test_expect_ok(qsf_calibrate_run(&r, c, &err), &err);
}

/* ---- experts */

/* Sums of block 1. */
typedef struct Sums {
    const QsfProgram *p;
    double in[HIDDEN], down[EXPERTS][FFN];
    unsigned n[EXPERTS];
} Sums;

static void see(void *arg, const QsfTapData *t) {
    Sums *s = arg;
    const QsfStep *step = &s->p->step[t->step];
    if (t->x == NULL || step->op != QSF_OP_EXPERTS || step->block != 1) return;
    double *to = t->expert == QSF_NONE ? s->in : s->down[t->expert];
    assert_int_equal(t->k, t->expert == QSF_NONE ? HIDDEN : FFN);
    for (uint32_t i = 0; i < t->n_cols; i++)
        for (uint32_t k = 0; k < t->k; k++) to[k] += pow((double)t->x[(size_t)i * t->x_stride + k], 2);
    if (t->expert != QSF_NONE) s->n[t->expert] += t->n_cols;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Compares energies with means, which have the floor. */
static void expect_energies(const float *have, const double *mean, int n, const char *what) {
    double sorted[WIDEST];
    memcpy(sorted, mean, (size_t)n * sizeof *mean);
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    const double least = 0.01 * (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    for (int k = 0; k < n; k++) {
        const double want = mean[k] < least ? least : mean[k];
        if (fabs((double)have[k] - want) > 1e-4 * want)
            fail_msg("%s: %d is %g, not %g", what, k, (double)have[k], want);
    }
}

static const QsfCalTensor *tensor_of(const QsfRuntime *rt, const QsfCalibration *c, const char *name) {
    const QsfTensor *t = qsf_source_find_tensor(rt->model.src, name);
    assert_non_null(t);
    return &c->tensor[t - qsf_source_tensor(rt->model.src, 0)];
}

static void sum_by_hand(QsfRuntime *rt, Sums *s) {
    QsfErr err = { 0 };
    s->p = &rt->model.prog;
    qsf_forward_tap(rt->fwd, see, s);
    for (int at = 0; at < N; at++) {
        if (at % WINDOW == 0) qsf_forward_truncate(rt->fwd, 0);
        qsf_test_expect_ok(qsf_forward_eval(rt->fwd, &ids[at], 1, NULL, NULL, &err), &err);
    }
    qsf_forward_tap(rt->fwd, NULL, NULL);
}

static void test_experts(void **state) {
    (void)state;
    QsfRuntime rt;
    QsfCalibratePlan p;
    QsfCalibration c;
    Sums s = { 0 };
    double all[FFN] = { 0 };
    unsigned n = 0;
    assert_int_equal(qsf_test_write_tiny_experts(model, 7), 0);
    open_model(&rt, &p);
    calibrate(&rt, &p, &c);
    sum_by_hand(&rt, &s);
    for (int e = 0; e < EXPERTS; e++) {
        n += s.n[e];
        for (int k = 0; k < FFN; k++) all[k] += s.down[e][k];
    }
    assert_int_equal(n, 2 * N);
    assert_true(s.n[0] > 0);
    assert_int_equal(s.n[EXPERTS - 1], 0); /* all that is known about it is the mean of all */
    const QsfCalTensor *down = tensor_of(&rt, &c, "blk.1.ffn_down_exps.weight"),
                       *gate = tensor_of(&rt, &c, "blk.1.ffn_gate_exps.weight");
    assert_int_equal(down->sets, EXPERTS);
    for (int e = 0; e < EXPERTS; e++) {
        for (int k = 0; k < FFN; k++) s.down[e][k] = (s.down[e][k] + all[k] / n) / (s.n[e] + 1);
        expect_energies(c.energy + down->at + e * FFN, s.down[e], FFN, "down");
    }
    for (int k = 0; k < HIDDEN; k++) s.in[k] /= N;
    assert_int_equal(gate->sets, 1);
    expect_energies(c.energy + gate->at, s.in, HIDDEN, "gate");
    /* The router and all experts read the same values. */
    assert_int_equal(tensor_of(&rt, &c, "blk.1.ffn_up_exps.weight")->at, gate->at);
    assert_int_equal(tensor_of(&rt, &c, "blk.1.ffn_gate_inp.weight")->at, gate->at);
    qsf_calibration_free(&c);
    qsf_calibrate_plan_free(&p);
    qsf_runtime_close(&rt);
}

/* ---- quantization */

static void pack(QsfSource *s, const char *to, const QsfCalibration *c, QsfPackReport *r) {
    QsfErr err = { 0 };
    QsfUses uses;
    QsfPackOptions o = { .flags = QSFF_LINES, .threads = 1, .calibration = c, .uses = &uses };
    qsf_test_expect_ok(qsf_uses_of_source(&uses, s, &ledger, &err), &err);
    qsf_test_expect_ok(qsf_pack_type_parse(&o.type, "3bit", &err), &err);
    qsf_test_expect_ok(qsf_pack(s, to, &o, r, &err), &err);
    qsf_uses_free(&uses);
}

static void read_row(const QsfSource *s, const QsfTensor *t, const qk_table *kernels, uint64_t row,
                     float *x) {
    QsfWeights w;
    QsfErr err = { 0 };
    uint8_t raw[WIDEST * sizeof(float)];
    qsf_test_expect_ok(qsf_weights_open(&w, s, t, kernels, &err), &err);
    qsf_test_expect_ok(qsf_weights_read(&w, row, 1, raw, &err), &err);
    qsf_weights_unpack(&w, raw, 1, x);
    qsf_weights_close(&w);
}

/* Returns the weighted sum of squared errors of a tensor of the file at path. */
static double error_of(const char *path, const char *name, const QsfCalibration *c) {
    QsfSource *a = open_ok(model), *b = open_ok(path);
    const QsfTensor *t = qsf_source_find_tensor(a, name), *u = qsf_source_find_tensor(b, name);
    const QsfCalTensor *of = &c->tensor[t - qsf_source_tensor(a, 0)];
    float x[WIDEST], y[WIDEST];
    double sum = 0;
    char own[QSF_ITEM_NAME]; /* of the matrix of an expert */
    qk_table kernels;
    qk_table_init(&kernels, QK_LEVEL_REF);
    assert_true(t->ne[0] <= WIDEST && of->width == t->ne[0] && of->sets > 0);
    for (uint64_t row = 0; row < t->ne[1] * t->ne[2]; row++) {
        const float *w = c->energy + of->at + (of->sets > 1 ? row / t->ne[1] * of->width : 0);
        read_row(a, t, &kernels, row, x);
        if (u != NULL)
            read_row(b, u, &kernels, row, y);
        else
            read_row(b, qsf_source_find_tensor(b, qsf_expert_name(name, (uint32_t)(row / t->ne[1]), 0, own)),
                     &kernels, row % t->ne[1], y);
        for (uint64_t k = 0; k < t->ne[0]; k++) sum += (double)w[k] * pow((double)x[k] - (double)y[k], 2);
    }
    qsf_source_close(a);
    qsf_source_close(b);
    return sum;
}

static void check_improves(unsigned least) {
    QsfRuntime rt;
    QsfCalibratePlan p;
    QsfCalibration c;
    QsfPackReport r;
    unsigned n = 0;
    open_model(&rt, &p);
    calibrate(&rt, &p, &c);
    qsf_runtime_close(&rt);
    qsf_calibrate_plan_free(&p);
    QsfSource *s = open_ok(model); /* the report has its names */
    pack(s, plain, NULL, NULL);
    pack(s, weighted, &c, &r);
    for (uint32_t k = 0; k < r.items.n; k++) {
        const QsfItem *i = &r.items.item[k];
        if (i->code == i->keep || i->weights == NULL || i->cols % 64 != 0) continue;
        const double before = error_of(plain, i->t->name, &c), after = error_of(weighted, i->t->name, &c);
        if (!(after < before)) fail_msg("%s: %g, without calibration %g", i->t->name, after, before);
        n++;
    }
    for (uint32_t l = 0; l < c.n_layers; l++) assert_true(c.skip_kl[l] > 0 && c.cosine[l] < 1);
    assert_int_equal(n, least);
    qsf_pack_report_free(&r);
    qsf_source_close(s);
    qsf_calibration_free(&c);
}

static void test_experts_improve(void **state) {
    (void)state;
    assert_int_equal(qsf_test_write_tiny_experts(model, 7), 0);
    check_improves(2 * 7 + 1);
}

/* The matrices of each expert are tensors: the same channels as in the tensors of all of them. */
static void test_separate_experts(void **state) {
    QsfCalibration c[2];
    QsfSource *s[2];
    char name[64], own[QSF_ITEM_NAME];
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        QsfRuntime rt;
        QsfCalibratePlan p;
        assert_int_equal(qsf_test_write_tiny_experts_as(model, 7,
                                                        i == 0 ? QSF_TINY_STACKED : QSF_TINY_SEPARATE, false),
                         0);
        open_model(&rt, &p);
        calibrate(&rt, &p, &c[i]);
        qsf_runtime_close(&rt);
        qsf_calibrate_plan_free(&p);
        s[i] = open_ok(model);
    }
    for (unsigned part = 0; part < 3; part++) {
        static const char *const parts[] = { "gate", "up", "down" };
        snprintf(name, sizeof name, "blk.1.ffn_%s_exps.weight", parts[part]);
        const QsfTensor *t = qsf_source_find_tensor(s[0], name);
        const QsfCalTensor *all = &c[0].tensor[t - qsf_source_tensor(s[0], 0)];
        for (uint32_t e = 0; e < QSF_TINY_EXPERTS; e++) {
            const QsfTensor *u = qsf_source_find_tensor(s[1], qsf_expert_name(name, e, 0, own));
            const QsfCalTensor *one = &c[1].tensor[u - qsf_source_tensor(s[1], 0)];
            assert_int_equal(one->sets, 1);
            assert_int_equal(one->width, all->width);
            assert_memory_equal(c[0].energy + all->at + (all->sets > 1 ? e * all->width : 0),
                                c[1].energy + one->at, one->width * sizeof(float));
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        qsf_source_close(s[i]);
        qsf_calibration_free(&c[i]);
    }
}

static void test_recurrence_improves(void **state) {
    (void)state;
    assert_int_equal(qsf_test_write_tiny_mamba(model, 7), 0);
    check_improves(2 * 3);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_experts),
                                        cmocka_unit_test(test_experts_improve),
                                        cmocka_unit_test(test_separate_experts),
                                        cmocka_unit_test(test_recurrence_improves) };
    return cmocka_run_group_tests(tests, begin, end);
}
