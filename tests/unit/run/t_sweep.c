/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which budgets the picture of --plan compares. */
#include "tests/harness/qsf_test.h"

#include "src/run/sweep.c"
#include "tests/harness/plans.h"

int run_fail(const QsfErr *err) { return err->code; }

void run_model_title(const RunOptions *o, const QsfRuntime *rt, char *dst, size_t cap) {
    (void)o;
    (void)rt;
    snprintf(dst, cap, "model");
}

static void check(uint64_t least, uint64_t full, uint64_t chosen) {
    uint64_t b[RUN_BUDGETS];
    unsigned at, n = choose_budgets(least, full, chosen, b, &at);
    assert_true(n >= 1 && n <= RUN_BUDGETS);
    assert_true(at < n && b[at] == chosen);
    assert_true(b[0] <= least && b[n - 1] >= full);
    for (unsigned i = 1; i < n; i++) assert_true(b[i] > b[i - 1]);
    if (full >= least + 2 * RUN_BUDGETS) assert_int_equal(n, RUN_BUDGETS);
}

static void budgets_are_round_and_contain_the_chosen_one(void **state) {
    (void)state;
    uint64_t b[RUN_BUDGETS];
    unsigned at;
    static const uint64_t want[] = { 14, 100, 200, 260, 340, 420, 500, 590, 670, 750 };
    assert_int_equal(choose_budgets(14, 748, 200, b, &at), RUN_BUDGETS);
    assert_int_equal(at, 2);
    assert_memory_equal(b, want, sizeof want);
    for (uint64_t least = 1; least < 3000; least = least * 2 + 3)
        for (uint64_t full = least; full < 2000000; full += 1 + full / 5)
            for (uint64_t chosen = least > 2 ? least - 2 : least; chosen < 3000000; chosen += 1 + chosen / 7)
                check(least, full, chosen);
}

static void a_small_range_has_fewer(void **state) {
    (void)state;
    uint64_t b[RUN_BUDGETS];
    unsigned at;
    assert_int_equal(choose_budgets(11, 12, 200, b, &at), 3);
    assert_true(b[0] == 11 && b[1] == 12 && b[2] == 200 && at == 2);
    assert_int_equal(choose_budgets(11, 11, 11, b, &at), 1);
}

/* With more RAM, less is read; the first budget is the smallest, and with the last one nothing is read. */
static void check_sweep(const RunSweep *s, const QsfRuntime *rt) {
    const QsfPlan *p = &rt->plan;
    assert_true(s->predicted && s->chosen < s->n);
    assert_true(s->read_mb[s->chosen] == (double)p->disk_bytes / MB_BYTES && s->context[s->chosen] == p->ctx);
    for (unsigned i = 0; i < s->n; i++) {
        double sum = 0;
        for (unsigned k = 0; k < RUN_OWNER_N; k++) sum += s->owner_mb[k][i];
        assert_true(sum > 0 && sum <= s->budget_mb[i] + 0.5);
        assert_true(i == 0 || s->read_mb[i] <= s->read_mb[i - 1]);
        assert_true(i == 0 || s->tps[i] >= s->tps[i - 1]);
    }
    assert_true(rt->plan_options.pin_cap != UINT64_MAX || s->read_mb[s->n - 1] == 0);
}

static void plans_of_many_shapes(void **state) {
    (void)state;
    static const uint64_t budgets[] = { 200, 1000, 4000, 100000 };
    for (int shape = 0; shape < QSF_SHAPE_COUNT; shape++)
        for (unsigned i = 0; i < 2 * sizeof budgets / sizeof *budgets; i++) {
            static QsfRuntime rt; /* nothing of it is opened */
            RunSweep s;
            QsfErr err = { 0 };
            const RunOptions o = { .model = "model" };
            memset(&rt, 0, sizeof rt);
            qsf_plans_open_shape(&rt.model, (QsfPlanShape)shape);
            rt.plan_options = qsf_plans_options(budgets[i / 2] << 20);
            if (i % 2) rt.plan_options.pin_cap = 0;
            rt.prediction = (QsfPrediction){ .disk_bps = 1e9, .compute_bps = 2e10 };
            if (qsf_planning_make(&rt.plan, &rt.model, &rt.plan_options, &rt.facts, &err) == QSF_OK) {
                assert_int_equal(run_sweep(&s, &o, &rt), QSF_EXIT_OK);
                check_sweep(&s, &rt);
                if (shape != QSF_SHAPE_TINY && i % 2 == 0) assert_int_equal(s.n, RUN_BUDGETS);
                qsf_plan_free(&rt.plan);
            }
            qsf_shape_model_free(&rt.model);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(budgets_are_round_and_contain_the_chosen_one),
                                        cmocka_unit_test(plans_of_many_shapes),
                                        cmocka_unit_test(a_small_range_has_fewer) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
