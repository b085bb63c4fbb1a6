/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tree of a session's messages, made of records: branches, versions, what was forgotten, and the changes
 * that /undo and /redo go through. */
#include "tests/harness/qsf_test.h"
#include "ui/tree.h"

/* Records are 100 bytes apart. */
typedef struct Tape {
    UiTree tree;
    uint64_t at;
} Tape;

static void put(Tape *x, QSFLogRecord r) {
    r.at = x->at;
    x->at += 100;
    r.len = r.text ? strlen(r.text) : 0;
    r.text_bytes = r.len;
    ui_tree_record(&x->tree, &r);
}

static QSFLogRecord record(QSFLogKind kind, uint32_t n, const char *by, bool more) {
    return (QSFLogRecord){ .kind = kind, .n = n, .by = by, .more = more };
}

static void message(Tape *x, const char *role, uint32_t id, const char *by, bool more) {
    put(x, (QSFLogRecord){
               .kind = QSF_LOG_MESSAGE, .role = role, .text = "t", .id = id, .by = by, .more = more });
}

static void user(Tape *x) { message(x, "user", 0, NULL, false); }
static void reply(Tape *x) { message(x, "assistant", 0, NULL, false); }

static void exchange(Tape *x) {
    user(x);
    reply(x);
}

static uint32_t tip(const Tape *x) { return ui_tree_spot(&x->tree).id; }

static uint32_t undo_leads_to(const Tape *x) {
    UiSpot to = { .id = 999 };
    return ui_tree_undo(&x->tree, &to) ? to.id : 999;
}

static uint32_t redo_leads_to(const Tape *x) {
    const UiStep *s = ui_tree_redo(&x->tree);
    return s ? s->to.id : 999;
}

static void test_versions(void **state) {
    (void)state;
    Tape x = { 0 };
    exchange(&x);
    put(&x, record(QSF_LOG_UNDO, 1, "retry", true));
    assert_int_equal(tip(&x), 1);
    reply(&x);
    assert_int_equal(tip(&x), 3);
    const UiNode *n = ui_tree_tip(&x.tree);
    assert_int_equal(n->nth, 2);
    assert_int_equal(ui_tree_versions(&x.tree, n), 2);
    assert_int_equal(ui_tree_version(&x.tree, n, 1)->id, 2);
    assert_null(ui_tree_version(&x.tree, n, 3));
    exchange(&x); /* 4, 5 follow version 2 */
    /* Back to version 1: the same message again. */
    put(&x, record(QSF_LOG_UNDO, 3, "version", true));
    message(&x, "assistant", 2, "version", false);
    assert_int_equal(tip(&x), 2);
    assert_int_equal(x.tree.n, 5);
    assert_int_equal(ui_tree_end(&x.tree, 3).id, 5);
    assert_int_equal(ui_tree_end(&x.tree, 1).id, 2);
    assert_int_equal(undo_leads_to(&x), 5);
    ui_tree_free(&x.tree);
}

/* A number that is known at another place, or impossible, is not believed. */
static void test_odd_numbers(void **state) {
    (void)state;
    Tape x = { 0 };
    exchange(&x);
    message(&x, "user", 1, NULL, false); /* a child of message 2 cannot be message 1 */
    assert_int_equal(tip(&x), 3);
    message(&x, "assistant", UINT32_MAX, NULL, false);
    assert_int_equal(tip(&x), 4);
    message(&x, "user", 4, NULL, false);
    assert_int_equal(tip(&x), 5);
    message(&x, "assistant", 90, NULL, false);
    assert_int_equal(tip(&x), 90);
    user(&x);
    assert_int_equal(tip(&x), 91);
    put(&x, record(QSF_LOG_UNDO, UINT32_MAX, NULL, false));
    assert_int_equal(tip(&x), 0);
    put(&x, record(QSF_LOG_UNDO, 7, "undo", false));
    put(&x, record(QSF_LOG_FORGET, 7, NULL, false));
    assert_int_equal(tip(&x), 0);
    ui_tree_free(&x.tree);
}

static void count_place(void *arg, uint64_t at) { *(uint64_t *)arg += at; }

/* More of an answer belongs to it, but not after something else has followed it. */
static void test_continue(void **state) {
    (void)state;
    Tape x = { 0 };
    uint64_t sum = 0;
    exchange(&x);
    reply(&x);
    assert_int_equal(x.tree.n, 2);
    ui_tree_places(&x.tree, ui_tree_tip(&x.tree), count_place, &sum);
    assert_int_equal(sum, 100 + 200);
    exchange(&x);
    put(&x, record(QSF_LOG_UNDO, 2, "undo", false));
    reply(&x);
    assert_int_equal(tip(&x), 5);
    assert_int_equal(ui_tree_tip(&x.tree)->nth, 2);
    sum = 0;
    ui_tree_places(&x.tree, ui_tree_tip(&x.tree), count_place, &sum);
    assert_int_equal(sum, 100 + 200 + 600);
    sum = 0;
    ui_tree_places(&x.tree, ui_tree_node(&x.tree, 2), count_place, &sum);
    assert_int_equal(sum, 100 + 200);
    assert_int_equal(ui_tree_end(&x.tree, 2).id, 4);
    ui_tree_free(&x.tree);
}

static void test_undo_exchanges(void **state) {
    (void)state;
    Tape x = { 0 };
    exchange(&x), exchange(&x), exchange(&x);
    assert_int_equal(undo_leads_to(&x), 4);
    put(&x, record(QSF_LOG_UNDO, 4, NULL, false)); /* as earlier versions wrote it */
    assert_int_equal(tip(&x), 2);
    assert_int_equal(redo_leads_to(&x), 4);
    message(&x, "user", 3, "redo", true);
    message(&x, "assistant", 4, "redo", false);
    assert_int_equal(tip(&x), 4);
    assert_int_equal(redo_leads_to(&x), 6);
    user(&x); /* another way: what was undone is not made again */
    assert_null(ui_tree_redo(&x.tree));
    reply(&x);
    assert_int_equal(undo_leads_to(&x), 4);
    assert_int_equal(x.tree.n, 8);
    ui_tree_free(&x.tree);
}

/* /clear, /retry and /forget are changes of their own; exchanges can be removed across them. */
static void test_undo_others(void **state) {
    (void)state;
    Tape x = { 0 };
    exchange(&x), exchange(&x);
    put(&x, record(QSF_LOG_FORGET, 2, NULL, false));
    UiSpot to;
    const UiStep *s = ui_tree_undo(&x.tree, &to);
    assert_string_equal(s->by, "forget");
    assert_int_equal(to.id, 4);
    assert_int_equal(to.forget, 0);
    put(&x, record(QSF_LOG_CLEAR, 0, NULL, false));
    assert_int_equal(undo_leads_to(&x), 4);
    assert_string_equal(ui_tree_undo(&x.tree, &to)->by, "clear");
    /* Taken back: all of it again, and what had left the context. */
    put(&x, record(QSF_LOG_CLEAR, 0, "undo", true));
    for (uint32_t i = 1; i <= 4; i++) message(&x, i % 2 ? "user" : "assistant", i, "undo", true);
    put(&x, record(QSF_LOG_FORGET, 2, "undo", false));
    assert_string_equal(ui_tree_undo(&x.tree, &to)->by, "forget");
    assert_string_equal(ui_tree_redo(&x.tree)->by, "clear");
    put(&x, record(QSF_LOG_UNDO, 1, "retry", true));
    reply(&x);
    assert_string_equal(ui_tree_undo(&x.tree, &to)->by, "retry");
    put(&x, record(QSF_LOG_UNDO, 2, "undo", false)); /* the exchange, not /retry */
    assert_int_equal(tip(&x), 2);
    assert_int_equal(redo_leads_to(&x), 5);
    uint32_t gone, front;
    ui_tree_forgotten(&x.tree, ui_tree_spot(&x.tree), &gone, &front);
    assert_int_equal(gone, 2);
    ui_tree_free(&x.tree);
}

/* Summaries count as messages of the context. */
static void test_summaries(void **state) {
    (void)state;
    Tape x = { 0 };
    uint32_t gone, front;
    exchange(&x), exchange(&x), exchange(&x);
    put(&x, (QSFLogRecord){ .kind = QSF_LOG_FORGET, .n = 4, .name = "sum", .text = "up" });
    ui_tree_forgotten(&x.tree, ui_tree_spot(&x.tree), &gone, &front);
    assert_int_equal(gone, 4);
    assert_int_equal(front, 2);
    put(&x, record(QSF_LOG_FORGET, 3, NULL, false)); /* the summary, and one message */
    ui_tree_forgotten(&x.tree, ui_tree_spot(&x.tree), &gone, &front);
    assert_int_equal(gone, 5);
    assert_int_equal(front, 0);
    put(&x, record(QSF_LOG_CLEAR, 0, NULL, false));
    exchange(&x);
    put(&x, (QSFLogRecord){ .kind = QSF_LOG_FORGET, .n = 2, .name = "sum", .text = "up" });
    put(&x, record(QSF_LOG_UNDO, 2, "undo", false));
    ui_tree_forgotten(&x.tree, ui_tree_spot(&x.tree), &gone, &front);
    assert_int_equal(gone, 2);
    assert_int_equal(front, 0);
    assert_int_equal(tip(&x), 8);
    ui_tree_free(&x.tree);
}

static void setting(Tape *x, const char *was, const char *is, const char *by) {
    put(x, (QSFLogRecord){ .kind = QSF_LOG_SET, .name = "top-k", .was = was, .text = is, .by = by });
}

static void test_settings(void **state) {
    (void)state;
    Tape x = { 0 };
    UiSpot to;
    user(&x);
    setting(&x, "40", "41", NULL); /* while the answer is written */
    setting(&x, "41", "42", NULL);
    setting(&x, NULL, "7", NULL); /* not by the user */
    reply(&x);
    const UiStep *s = ui_tree_undo(&x.tree, &to);
    assert_int_equal(s->kind, UI_STEP_EXCHANGE); /* the answer came last */
    assert_int_equal(s - 1 == x.tree.steps, 1);
    assert_int_equal(x.tree.steps[0].kind, UI_STEP_SETTING);
    setting(&x, "42", "43", NULL);
    setting(&x, "43", "44", NULL);
    s = ui_tree_undo(&x.tree, &to);
    assert_int_equal(s->kind, UI_STEP_SETTING);
    assert_string_equal(s->was, "42");
    assert_string_equal(s->is, "44");
    setting(&x, NULL, "42", "undo");
    assert_int_equal(ui_tree_undo(&x.tree, &to)->kind, UI_STEP_EXCHANGE);
    assert_int_equal(ui_tree_redo(&x.tree)->kind, UI_STEP_SETTING);
    setting(&x, NULL, "44", "redo");
    put(&x, record(QSF_LOG_UNDO, 2, "undo", false)); /* the exchange before it: the setting stays */
    assert_int_equal(tip(&x), 0);
    assert_int_equal(ui_tree_undo(&x.tree, &to)->kind, UI_STEP_SETTING);
    assert_int_equal(redo_leads_to(&x), 2);
    put(&x, (QSFLogRecord){ .kind = QSF_LOG_SYSTEM, .text = "one" });
    assert_int_equal(ui_tree_undo(&x.tree, &to)->kind, UI_STEP_SETTING);
    put(&x, (QSFLogRecord){ .kind = QSF_LOG_SYSTEM, .text = "two", .by = "system" });
    s = ui_tree_undo(&x.tree, &to);
    assert_int_equal(s->kind, UI_STEP_SYSTEM);
    assert_int_equal(s->was_at + 100, s->is_at);
    ui_tree_free(&x.tree);
}

static void branch(Tape *x, const char *name) {
    put(x, (QSFLogRecord){ .kind = QSF_LOG_SET, .name = QSF_LOG_BRANCH, .text = name });
}

static void test_branches(void **state) {
    (void)state;
    Tape x = { 0 };
    UiSpot to;
    exchange(&x);
    branch(&x, "main");
    branch(&x, "other");
    exchange(&x);
    assert_string_equal(ui_tree_branch(&x.tree), "other");
    assert_true(ui_tree_find_branch(&x.tree, "main", &to));
    assert_int_equal(to.id, 2);
    assert_string_equal(ui_tree_branch_at(&x.tree, 2), "main");
    branch(&x, "main");
    put(&x, record(QSF_LOG_UNDO, 2, "goto", false));
    exchange(&x);
    assert_true(ui_tree_find_branch(&x.tree, "other", &to));
    assert_int_equal(to.id, 4);
    assert_true(ui_tree_find_branch(&x.tree, "main", &to));
    assert_int_equal(to.id, 6);
    assert_false(ui_tree_find_branch(&x.tree, "none", &to));
    ui_tree_free(&x.tree);
}

/* Memory is limited: branches that are not open are dropped, and the conversation itself never. */
static void test_bounded(void **state) {
    (void)state;
    Tape x = { .tree.max = 100 };
    for (int i = 0; i < 1000; i++) {
        exchange(&x);
        put(&x, record(QSF_LOG_UNDO, 2, "undo", false));
    }
    assert_true(x.tree.n <= 100);
    assert_true(x.tree.dropped);
    assert_int_equal(tip(&x), 0);
    for (int i = 0; i < 1000; i++) exchange(&x);
    assert_int_equal(ui_tree_depth(&x.tree, ui_tree_tip(&x.tree)), 2000);
    assert_int_equal(x.tree.n_steps, UI_STEPS_MAX);
    for (int i = 0; i < 20000; i++) put(&x, record(QSF_LOG_FORGET, 1, NULL, false));
    assert_true(x.tree.n_forgets < 5000);
    assert_true(ui_tree_bytes(&x.tree) < 400000);
    ui_tree_free(&x.tree);
}

/* Any records, in any order: the tree stays one. */
static void test_any_records(void **state) {
    (void)state;
    static const char *const bys[] = { NULL, "undo", "redo", "retry" };
    uint32_t seed = 1;
    Tape x = { .tree.max = 60 };
    for (int i = 0; i < 200000; i++) {
        uint32_t r[5];
        for (int k = 0; k < 5; k++) r[k] = (seed = seed * 1664525 + 1013904223) >> 16;
        const char *by = bys[r[1] % 4];
        const bool more = r[2] % 4 == 0;
        switch (r[0] % 12) {
        case 0: put(&x, record(QSF_LOG_UNDO, r[3] % 6, by, more)); break;
        case 1: put(&x, record(QSF_LOG_FORGET, r[3] % 4, by, more)); break;
        case 2:
            put(&x, (QSFLogRecord){ .kind = QSF_LOG_FORGET,
                                    .n = r[3] % 4,
                                    .name = "q",
                                    .text = "s",
                                    .by = by,
                                    .more = more });
            break;
        case 3:
            if (r[3] % 8 == 0) put(&x, record(QSF_LOG_CLEAR, 0, by, more));
            break;
        case 4: setting(&x, r[3] % 2 ? "1" : NULL, "2", by); break;
        case 5: branch(&x, r[3] % 2 ? "a" : "b"); break;
        default:
            message(&x, r[3] % 2 ? "user" : "assistant", r[4] % 3 ? 0 : x.tree.last_id - r[4] % 50, by, more);
        }
        const UiTree *t = &x.tree;
        uint32_t gone, front;
        ui_tree_forgotten(t, ui_tree_spot(t), &gone, &front);
        assert_true(!t->failed && t->n_done <= t->n_steps && t->n_steps <= UI_STEPS_MAX && gone <= t->depth);
        assert_int_equal(ui_tree_depth(t, ui_tree_tip(t)), t->depth);
    }
    ui_tree_free(&x.tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),    cmocka_unit_test(test_odd_numbers),
        cmocka_unit_test(test_continue),    cmocka_unit_test(test_undo_exchanges),
        cmocka_unit_test(test_undo_others), cmocka_unit_test(test_summaries),
        cmocka_unit_test(test_settings),    cmocka_unit_test(test_branches),
        cmocka_unit_test(test_bounded),     cmocka_unit_test(test_any_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
