/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The picture of --plan, drawn from numbers that are made up. */
#include "tests/harness/picture_rig.h"

#include "src/run/plan_picture.c"

static RunSweep made_up(void) {
    RunSweep s = {
        .weights_mb = 633.4, .disk_gbps = 1.25, .threads = 2, .predicted = true, .n = 10, .chosen = 2
    };
    snprintf(s.model, sizeof s.model, "a <b> & \"c\"\x1b.gguf, llama 1.1B Q4_K");
    for (unsigned i = 0; i < s.n; i++) {
        const double b = i == 0 ? 14 : 80.0 * i + 40;
        s.budget_mb[i] = b;
        s.read_mb[i] = 633.4 * (9 - i) / 9;
        s.tps[i] = 20 / (1 + s.read_mb[i] / 50);
        s.context[i] = i < 4 ? 512 * (i + 1) : 4096;
        s.owner_mb[RUN_OWNER_WEIGHTS][i] = b * 0.7;
        s.owner_mb[RUN_OWNER_SLOTS][i] = i < 9 ? 4 : 0;
        s.owner_mb[RUN_OWNER_KV][i] = b * 0.15;
        s.owner_mb[RUN_OWNER_COMPUTING][i] = b * 0.02;
        s.owner_mb[RUN_OWNER_TEXT][i] = 1.5;
        s.owner_mb[RUN_OWNER_PROGRAM][i] = 3;
    }
    return s;
}

static void the_same_numbers_give_the_same_bytes(void **state) {
    (void)state;
    const RunSweep s = made_up();
    QsfStrbuf svg = QSF_STRBUF_INIT;
    run_plan_picture(&svg, &s);
    assert_true(qsf_strbuf_ok(&svg));
    assert_null(strstr(svg.data, "<b>"));
    assert_null(strchr(svg.data, '\x1b'));
    assert_non_null(strstr(svg.data, "prefers-color-scheme: dark"));
    rig_expect_apart(&svg, WIDTH, HEIGHT);
    rig_expect_golden(&svg, "plan.svg");
    qsf_strbuf_free(&svg);
}

/* One budget, no speeds, a budget far above what is needed, a name that is too long. */
static void odd_numbers_are_drawn(void **state) {
    (void)state;
    for (unsigned n = 1; n <= RUN_BUDGETS; n++)
        for (unsigned kind = 0; kind < 3; kind++) {
            RunSweep s = made_up();
            QsfStrbuf svg = QSF_STRBUF_INIT;
            s.n = n;
            s.chosen = n - 1;
            s.predicted = kind > 0;
            if (kind == 2) memset(s.model, 'W', sizeof s.model - 1);
            if (kind == 2) s.budget_mb[n - 1] = 100000;
            if (kind == 1) memset(s.read_mb, 0, sizeof s.read_mb);
            run_plan_picture(&svg, &s);
            rig_expect_apart(&svg, WIDTH, HEIGHT);
            qsf_strbuf_free(&svg);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_same_numbers_give_the_same_bytes),
                                        cmocka_unit_test(odd_numbers_are_drawn) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
