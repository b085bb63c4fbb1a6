/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /experts: what it says about models with and without experts, on wide and narrow screens. */
#include "tests/harness/app_rig.h"

#define MB (1ull << 20)

/* What was said last. */
static const char *last(const Fixture *x) { return ui_buf_str(&x->app.chat.items[x->app.chat.n - 1]->raw); }

#define HAS(text, part)                                       \
    do {                                                      \
        if (!strstr(text, part)) print_message("%s\n", text); \
        assert_non_null(strstr(text, part));                  \
    } while (0)

/* 4 layers of 64 experts, the first without any. */
static void sparse(Fixture *x) {
    x->engine.stats.expert = (QSFExpertInfo){
        .bytes = 512 * MB, .slot_bytes = 2 * MB, .n = 256, .resident = 100, .slots = 128, .expected_hits = 0.6
    };
    x->engine.n_layers = 6;
    for (uint32_t i = 1; i < 5; i++)
        x->engine.layers[i] = (QSFLayerStats){ .experts = 64, .experts_in = 25 * (i % 2) + 12 };
    x->app.full_screen = true;
    x->app.columns = 100;
}

static void used(Fixture *x) {
    QSFExpertInfo *e = &x->engine.stats.expert;
    e->uses = 3200;
    e->misses = 800;
    e->hits = 0.75;
    x->engine.stats.bytes_per_token = 12.5 * (double)MB;
    x->engine.stats.stall = 0.4;
    for (uint32_t i = 1; i < 5; i++) {
        x->engine.layers[i].expert_uses = 800;
        x->engine.layers[i].expert_misses = 100 * i;
    }
    x->engine.stats.budget = 2000 * MB;
    x->engine.expert_budgets[0] = (QSFExpertBudget){ 1536 * MB, 0.2, 0.5, 2.06 };
    x->engine.expert_budgets[1] = (QSFExpertBudget){ 2000 * MB, 0.4, 0.75, 4.1 };
    x->engine.expert_budgets[2] = (QSFExpertBudget){ 6144 * MB, 1, 1, 0 };
    x->engine.n_expert_budgets = 3;
}

static void test_dense(void **state) {
    Fixture *x = *state;
    say(x, "/experts");
    HAS(last(x), "the model has no experts");
    say(x, "/experts forget");
    HAS(last(x), "/experts forget: the model has no experts");
    x->engine.stats.state = QSF_STATE_EMPTY;
    say(x, "/experts");
    HAS(last(x), "no model is loaded");
}

static void test_before_an_answer(void **state) {
    Fixture *x = *state;
    sparse(x);
    say(x, "/experts");
    HAS(last(x), "experts  256 in 4 layers, 512.0 MB\n");
    HAS(last(x), "in RAM   100 (39 %), 200.0 MB\n");
    HAS(last(x), "slots    128 of 2.0 MB\n");
    HAS(last(x), "hits     - (expected 60 %)\n");
    HAS(last(x), "budgets  known after some tokens\n");
    assert_null(strstr(last(x), "disk "));
    x->engine.stats.expert.slots = 0;
    say(x, "/experts");
    HAS(last(x), "slots    none: each is read when it is chosen\n");
    HAS(last(x), "budgets  the other weights do not fit, either\n");
    x->engine.stats.expert.resident = x->engine.stats.expert.n;
    x->engine.stats.pin_total = 400;
    x->engine.stats.pin_done = 100;
    say(x, "/experts");
    HAS(last(x), "in RAM   256 (100 %), 512.0 MB\nreading  25 % of it done\n");
    x->engine.stats.pin_done = 400;
    say(x, "/experts");
    assert_null(strstr(last(x), "reading "));
}

static void test_measured(void **state) {
    Fixture *x = *state;
    sparse(x);
    used(x);
    say(x, "/experts");
    HAS(last(x), "hits     75 % of 3,200 (expected 60 %)\n");
    HAS(last(x), "disk     12.5 MB/token\nwaiting  40 % of the last request\n");
    HAS(last(x), "  2 ▅ 37/64    88%    3 ▂ 12/64    75%    4 ▅ 37/64    62%");
    HAS(last(x), "at 1.5 GB: 50 %, about 2.06 t/s\n");
    HAS(last(x), "at 2000 MB: 75 %, about 4.10 t/s now\n");
    HAS(last(x), "at 6 GB: 100 %\n");
    x->app.chat.ascii = true;
    say(x, "/experts");
    for (const char *p = last(x); *p; p++) assert_true((unsigned char)*p < 0x80);
}

/* No line is longer than the screen. */
static void test_narrow(void **state) {
    static const int columns[] = { 40, 80 };
    Fixture *x = *state;
    sparse(x);
    used(x);
    x->app.chat.ascii = true;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        x->app.columns = columns[i];
        say(x, "/experts");
        for (const char *p = last(x); *p; p += strcspn(p, "\n"), p += *p == '\n')
            if (strcspn(p, "\n") > (size_t)columns[i] - 2 && strncmp(p, "/experts", 8) != 0)
                fail_msg("%.*s", (int)strcspn(p, "\n"), p);
    }
}

static void test_forget(void **state) {
    Fixture *x = *state;
    sparse(x);
    say(x, "/experts forget");
    assert_int_equal(x->engine.n_forgets, 1);
    HAS(last(x), "forgotten");
    say(x, "/experts forge");
    HAS(last(x), "only \"forget\" can follow");
    assert_int_equal(x->engine.n_forgets, 1);
}

static void test_mem(void **state) {
    Fixture *x = *state;
    sparse(x);
    used(x);
    say(x, "/mem");
    HAS(last(x),
        "experts                200.0 MB of   512.0 MB, 128 slots, 60 % hits expected, 75 % measured\n");
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_dense),  T(test_before_an_answer), T(test_measured),
        T(test_narrow), T(test_forget),           T(test_mem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
