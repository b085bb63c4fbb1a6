/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which budgets the picture of --plan compares. */
#include "tests/harness/qsf_test.h"

#include "src/run/sweep.c"

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

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(budgets_are_round_and_contain_the_chosen_one),
                                        cmocka_unit_test(a_small_range_has_fewer) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
