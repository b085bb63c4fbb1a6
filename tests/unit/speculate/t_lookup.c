/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Drafts from what was said, and how many of them pay. */
#include <string.h>

#include "src/speculate/control.h"
#include "tests/harness/qsf_test.h"

enum { TOKENS = 8192 };

typedef struct Rig {
    QsfLedger ledger;
    void *state;
    int32_t ids[4 * TOKENS];
    uint32_t n;
} Rig;

static void open_rig(Rig *r) {
    const QsfPlan plan = { .lookup_tokens = TOKENS, .draft_cols = QSF_DRAFT_COLS };
    const QsfDraftOpen o = { .plan = &plan, .ledger = &r->ledger };
    QsfErr err = { 0 };
    r->n = 0;
    qsf_ledger_init(&r->ledger, 0);
    qsf_test_expect_ok(qsf_draft_lookup.open(&r->state, &o, &err), &err);
    assert_int_equal(r->ledger.used[QSF_MEM_TRANSCRIPT], qsf_lookup_bytes(TOKENS));
}

static void close_rig(Rig *r) {
    qsf_draft_lookup.close(r->state, &r->ledger);
    assert_int_equal(r->ledger.total, 0);
    qsf_ledger_destroy(&r->ledger);
}

static void say(Rig *r, const char *text) {
    for (; *text != '\0'; text++) r->ids[r->n++] = *text;
}

/* The drafts as text. */
static const char *guess(Rig *r, unsigned *grade) {
    static char text[QSF_DRAFT_MOST + 1];
    int32_t out[QSF_DRAFT_MOST];
    const QsfDraftView v = { r->ids, r->n };
    const uint32_t n = qsf_draft_lookup.propose(r->state, &v, QSF_DRAFT_MOST, out, grade);
    for (uint32_t i = 0; i < n; i++) text[i] = (char)out[i];
    text[n] = '\0';
    return text;
}

static void what_followed(void **state) {
    static Rig r;
    unsigned grade = 9;
    (void)state;
    open_rig(&r);
    say(&r, "one two three four. ");
    assert_string_equal(guess(&r, &grade), "");
    say(&r, "an");
    assert_string_equal(guess(&r, &grade), ""); /* two tokens are too few */
    say(&r, "d t");
    assert_string_equal(guess(&r, &grade), "");
    say(&r, "wo t");
    assert_string_equal(guess(&r, &grade), "hree fo");
    assert_int_equal(grade, 1); /* " two t" */
    say(&r, "hree fo");
    assert_string_equal(guess(&r, &grade), "ur. and");
    assert_int_equal(grade, 2);
    say(&r, " x, x, x, ");
    assert_string_equal(guess(&r, &grade), "x, x, x"); /* it repeats itself */
    close_rig(&r);
}

/* /retry: what was said before is found, although it has left the conversation. */
static void after_a_cut(void **state) {
    static Rig r;
    unsigned grade;
    (void)state;
    open_rig(&r);
    say(&r, "question? the answer is 42.");
    (void)guess(&r, &grade);
    r.n = 10;
    qsf_draft_lookup.cut(r.state, 10);
    assert_string_equal(guess(&r, &grade), "the ans");
    say(&r, "the");
    assert_string_equal(guess(&r, &grade), " answer");
    r.n = 0;
    qsf_draft_lookup.cut(r.state, 0); /* another conversation */
    say(&r, "an answer");
    assert_string_equal(guess(&r, &grade), " is 42.");
    say(&r, " is 42.");
    (void)guess(&r, &grade);
    close_rig(&r);
}

/* A text that is longer than the ring: the newest is found, the oldest is not. */
static void a_long_text(void **state) {
    static Rig r;
    unsigned grade;
    uint32_t x = 1;
    (void)state;
    open_rig(&r);
    say(&r, "first words of it");
    (void)guess(&r, &grade);
    for (uint32_t i = 0; i < 3 * TOKENS; i++) {
        x = x * 1664525u + 1013904223u;
        r.ids[r.n++] = 1000 + (int32_t)(x >> 12);
        if (i % 997 == 0) (void)guess(&r, &grade);
    }
    say(&r, "last words of it");
    (void)guess(&r, &grade);
    say(&r, "first word");
    assert_string_equal(guess(&r, &grade), "s of it");
    assert_int_equal(grade, 1);
    close_rig(&r);
}

/* ---- what pays ---- */

static double cost(uint32_t width, double slope) { return 1e6 * (1 + slope * (width - 1)); }

/* Runs passes with drafts of which `right` of 10 are right at each position, and returns the time per token
 * relative to single tokens. */
static double simulate(double slope, unsigned right, uint32_t passes) {
    QsfDraftControl c;
    double ns = 0, tokens = 0;
    uint32_t x = 7;
    qsf_draft_control_init(&c, false);
    for (uint32_t i = 0; i < passes; i++) {
        double gain;
        const uint32_t n = qsf_draft_control_width(&c, 0, i % QSF_DRAFT_GRADES, QSF_DRAFT_MOST, &gain);
        uint32_t accepted = 0;
        while (accepted < n && (x = x * 1664525u + 1013904223u) >> 16 < 6553.6 * right) accepted++;
        qsf_draft_control_note(&c, 0, i % QSF_DRAFT_GRADES, n, accepted, cost(n + 1, slope), 100);
        ns += cost(n + 1, slope) + 100;
        tokens += accepted + 1;
    }
    return ns / tokens / cost(1, slope);
}

static void what_pays(void **state) {
    (void)state;
    for (unsigned right = 0; right <= 10; right++) {
        assert_true(simulate(1.0, right, 4000) < 1.02); /* a column costs as much as a pass */
        assert_true(simulate(0.3, right, 4000) < 1.02);
        assert_true(simulate(0.05, right, 4000) < 1.02);
    }
    assert_true(simulate(0.05, 9, 4000) < 0.4);
    assert_true(simulate(0.1, 10, 4000) < 0.3);
    assert_true(simulate(0.02, 5, 4000) < 0.65);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_followed), cmocka_unit_test(after_a_cut),
                                        cmocka_unit_test(a_long_text), cmocka_unit_test(what_pays) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
