/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The picture of --bench, drawn from numbers that are made up, and what is measured for it. */
#include "tests/harness/picture_rig.h"

#include "src/run/bench_picture.c"
#include "src/run/curve.c"

static RunBenchNumbers made_up(void) {
    RunBenchNumbers n = { .model = "tiny.gguf, llama 1.1B Q4_0",
                          .budget_mb = 200,
                          .prefill_tps = 214,
                          .decode_tps = 44.8,
                          .streamed_mb = 12.5,
                          .n_prompt = 256,
                          .n_gen = 64,
                          .threads = 2,
                          .level = "avx512vnni" };
    for (unsigned g = 0; g < QSF_MATMUL_N; g++) n.part.matmul_ms[g] = 3 + g;
    n.part.attention_ms = 0.6;
    n.part.prep_ms = 0.2;
    n.part.sync_ms = 0.21;
    n.part.disk_ms = 4;
    n.part.other_ms = 0.1;
    n.part.sampling_ms = 0.06;
    n.curve.n = 9;
    for (unsigned i = 0; i < n.curve.n; i++) {
        n.curve.length[i] = 8u << i;
        n.curve.prefill_tps[i] = i < 5 ? 60 + 35 * i : 230 - 9 * i;
        n.curve.decode_tps[i] = 45 - 1.5 * i + (i % 2);
    }
    return n;
}

static void the_same_numbers_give_the_same_bytes(void **state) {
    (void)state;
    const RunBenchNumbers n = made_up();
    QsfStrbuf svg = QSF_STRBUF_INIT;
    run_bench_picture(&svg, &n);
    rig_expect_apart(&svg, WIDTH, 600);
    rig_expect_golden(&svg, "bench.svg");
    qsf_strbuf_free(&svg);
}

static void odd_numbers_are_drawn(void **state) {
    (void)state;
    for (unsigned points = 0; points <= RUN_LENGTHS; points++) {
        RunBenchNumbers n = made_up();
        QsfStrbuf svg = QSF_STRBUF_INIT;
        n.curve.n = points;
        for (unsigned i = 0; i < points; i++) {
            n.curve.length[i] = 8u << i;
            n.curve.prefill_tps[i] = points % 2 ? 0 : 123456;
            n.curve.decode_tps[i] = i % 3 ? 0.05 : 12345;
        }
        if (points == 3) n.part = (RunBreakdown){ .matvec_ms = 0 };
        run_bench_picture(&svg, &n);
        rig_expect_apart(&svg, WIDTH, 600);
        qsf_strbuf_free(&svg);
    }
}

static void the_time_is_bounded(void **state) {
    (void)state;
    RunCurvePlan p;
    run_curve_plan(&p, 4096, 200, 40, 3);
    assert_true(p.n == 9 && p.length[0] == 8 && p.length[8] == 2048 && p.n_gen == 16);
    assert_true(p.rounds >= 2 && p.rounds <= 3);
    run_curve_plan(&p, 4096, 40, 0.2, 3); /* weights stream from a slow disk */
    assert_true(p.n >= 2 && p.n_gen == 2 && p.rounds == 1);
    run_curve_plan(&p, 4096, 1, 0.001, 3);
    assert_int_equal(p.n, 0);
    run_curve_plan(&p, 12, 1000, 1000, 3); /* a short context */
    assert_int_equal(p.n, 0);
    run_curve_plan(&p, 4096, 0, 0, 3);
    assert_int_equal(p.n, 0);
    for (double tps = 0.01; tps < 1e6; tps *= 3)
        for (uint32_t ctx = 1; ctx < 2000000; ctx = ctx * 3 + 1) {
            run_curve_plan(&p, ctx, tps * 7, tps, 1000);
            assert_true(p.seconds <= RUN_CURVE_SECONDS && p.n <= RUN_LENGTHS && p.rounds <= ROUNDS_MOST);
            for (unsigned i = 0; i < p.n; i++) assert_true(p.length[i] + p.n_gen <= ctx);
        }
}

static void medians_of_few(void **state) {
    (void)state;
    double one[] = { 3 }, two[] = { 5, 1 }, three[] = { 9, 2, 4 };
    assert_true(run_median(one, 1) == 3 && run_median(two, 2) == 3 && run_median(three, 3) == 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_numbers_give_the_same_bytes),
        cmocka_unit_test(odd_numbers_are_drawn),
        cmocka_unit_test(the_time_is_bounded),
        cmocka_unit_test(medians_of_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
