/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Early exit: tokens end at the exit only if they are sure enough, and what they left out is
 * made up for exactly. */
#include "tests/harness/qsf_test.h"

#include "src/plan/quality.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/rig.h"

enum { LAYERS = 8, PROMPT = 30, N = 80, VOCAB = 1000, EXIT = 5 };

static char path[512];
static int32_t ids[N];
static float full[N][VOCAB], early[N][VOCAB]; /* logits after all layers, and after EXIT of them */

static void open_rig(QsfRig *r, const QsfRigOptions *o) {
    QsfErr err = { 0 };
    QsfRigOptions with = *o;
    with.path = path;
    qsf_test_expect_ok(qsf_rig_open(r, &with, &err), &err);
}

static void eval(QsfRig *r, bool reduced, uint32_t from, uint32_t to) {
    QsfErr err = { 0 };
    int rc = reduced ? qsf_forward_decode(r->fwd, ids + from, to - from, NULL, NULL, &err)
                     : qsf_forward_eval(r->fwd, ids + from, to - from, NULL, NULL, &err);
    qsf_test_expect_ok(rc, &err);
}

static void set_exit(QsfRig *r, uint32_t exit, float margin) {
    QsfQuality q = { .value = 0.5f };
    qsf_quality_exit(&q, &r->model, exit, margin, 0.5f);
    qsf_forward_set_quality(r->fwd, &q);
}

static void keep_full(void *arg, uint32_t pos, const float *logits) {
    (void)arg;
    memcpy(full[pos], logits, sizeof full[pos]);
}

static void keep_early(void *arg, uint32_t pos, const float *logits) {
    (void)arg;
    memcpy(early[pos], logits, sizeof early[pos]);
}

static int write_model(void **state) {
    (void)state;
    QsfRig r;
    QsfErr err = { 0 };
    snprintf(path, sizeof path, "%s", qsf_test_tmp("exit.gguf"));
    for (int i = 0; i < N; i++) ids[i] = (i * 7919 + 3) % VOCAB;
    if (qsf_test_write_tiny_llama(path, &(QsfTinySpec){ .layers = LAYERS, .vocab = VOCAB }) != 0) return 1;
    open_rig(&r, &(QsfRigOptions){ 0 });
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids, N, keep_full, NULL, &err), &err);
    qsf_forward_truncate(r.fwd, 0);
    set_exit(&r, EXIT, QSF_EVERY_MARGIN);
    qsf_test_expect_ok(qsf_forward_decode(r.fwd, ids, N, keep_early, NULL, &err), &err);
    qsf_rig_close(&r);
    return 0;
}

static int remove_model(void **state) {
    (void)state;
    return unlink(path);
}

static float margin_of(uint32_t pos) { return qsf_forward_margin(early[pos], VOCAB); }

static uint64_t exited(const QsfRig *r) {
    QsfForwardStats s;
    qsf_forward_stats(r->fwd, &s);
    return s.exited_tokens;
}

/* A margin that about half of the tokens reach. */
static float middle(void) {
    float m[N];
    for (uint32_t i = 0; i < N; i++) m[i] = margin_of(i);
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t k = i + 1; k < N; k++)
            if (m[k] < m[i]) {
                const float t = m[i];
                m[i] = m[k], m[k] = t;
            }
    return m[N / 2];
}

static void test_margin_is_between_the_two_largest(void **state) {
    (void)state;
    const float rising[] = { -3, -2, 1.5f }, falling[] = { 4, 1, 0.5f }, same[] = { 2, 2, 1 };
    assert_true(qsf_forward_margin(rising, 3) - 3.5f == 0);
    assert_true(qsf_forward_margin(falling, 3) - 3 == 0);
    assert_true(qsf_forward_margin(same, 3) == 0);
}

static void test_where_a_llama_can_exit(void **state) {
    (void)state;
    QsfRig r;
    open_rig(&r, &(QsfRigOptions){ 0 });
    const QsfBlockSet *exits = qsf_forward_exits(r.fwd);
    assert_int_equal(qsf_blocks_count(exits), LAYERS - 1);
    assert_false(qsf_blocks_have(exits, 0));
    qsf_rig_close(&r);
}

/* Each token has the logits of the exit if their margin is large enough, and else those of a
 * build without the feature. */
static void check_tokens(QsfRig *r, float margin, uint32_t from, uint32_t to) {
    uint64_t want = exited(r);
    for (uint32_t i = from; i < to; i++) {
        const bool ends = margin_of(i) >= margin;
        eval(r, true, i, i + 1);
        want += ends;
        assert_memory_equal(qsf_forward_logits(r->fwd), ends ? early[i] : full[i], sizeof full[i]);
        assert_int_equal(exited(r), want);
        assert_int_equal(qsf_forward_n_past(r->fwd), i + 1);
        if (!ends) assert_int_equal(qsf_forward_exact(r->fwd), i + 1);
    }
}

static const QsfRigOptions plans[] = { { 0 },
                                       { .threads = 3, .batch = 4 },
                                       { .batch = 1 },
                                       { .stream = true },
                                       { .stream = true, .batch = 7, .threads = 2 } };

static void test_each_token_decides(void **state) {
    (void)state;
    const float margins[] = { 0, middle(), 1e30f };
    for (size_t p = 0; p < sizeof plans / sizeof *plans; p++)
        for (size_t m = 0; m < 3; m++) {
            QsfRig r;
            open_rig(&r, &plans[p]);
            eval(&r, false, 0, PROMPT);
            set_exit(&r, EXIT, margins[m]);
            check_tokens(&r, margins[m], PROMPT, N);
            if (m == 0) assert_int_equal(exited(&r), N - PROMPT);
            if (m == 2) assert_int_equal(exited(&r), 0);
            qsf_rig_close(&r);
        }
}

/* What waits is evaluated before an eval with everything, and the cache is then complete. */
static void test_a_prompt_finds_everything(void **state) {
    (void)state;
    for (uint32_t n = PROMPT + 1; n < N - 1; n += 9) {
        QsfRig r;
        open_rig(&r, &plans[n % 5]);
        eval(&r, false, 0, PROMPT);
        set_exit(&r, EXIT, 0);
        for (uint32_t i = PROMPT; i < n; i++) eval(&r, true, i, i + 1);
        eval(&r, false, n, N);
        assert_memory_equal(qsf_forward_logits(r.fwd), full[N - 1], sizeof full[0]);
        assert_int_equal(qsf_forward_exact(r.fwd), N);
        qsf_rig_close(&r);
    }
}

/* Other exits, skipped layers and truncations in between. */
static void test_changes_in_between(void **state) {
    (void)state;
    const float m = middle();
    QsfRig r;
    open_rig(&r, &(QsfRigOptions){ 0 });
    eval(&r, false, 0, PROMPT);
    set_exit(&r, 3, 0);
    for (uint32_t i = PROMPT; i < PROMPT + 5; i++) eval(&r, true, i, i + 1);
    set_exit(&r, EXIT, m);
    check_tokens(&r, m, PROMPT + 5, PROMPT + 20);
    assert_int_equal(qsf_forward_truncate(r.fwd, PROMPT + 12), PROMPT + 12);
    check_tokens(&r, m, PROMPT + 12, PROMPT + 20);
    assert_int_equal(qsf_forward_truncate(r.fwd, PROMPT - 3), PROMPT - 3);
    eval(&r, false, PROMPT - 3, PROMPT);
    check_tokens(&r, m, PROMPT, N - 10);
    QsfQuality skip = { .value = 0.5f };
    qsf_blocks_add(&skip.skip, 2);
    qsf_forward_set_quality(r.fwd, &skip);
    const uint32_t exact = qsf_forward_exact(r.fwd);
    eval(&r, true, N - 10, N - 5);
    assert_int_equal(qsf_forward_exact(r.fwd), exact < N - 10 ? N - 10 : exact);
    set_exit(&r, EXIT, 1e30f); /* positions without layer 2 stay so */
    eval(&r, true, N - 5, N);
    assert_int_equal(qsf_forward_exact(r.fwd), N - 10);
    assert_int_equal(qsf_forward_truncate(r.fwd, N - 10), N - 10);
    check_tokens(&r, 1e30f, N - 10, N);
    qsf_rig_close(&r);
}

/* With 2 bits the recent positions are a state, which layers after the exit get with the
 * positions that waited. */
static void test_with_recent_positions(void **state) {
    static float want[N][VOCAB];
    (void)state;
    const QsfRigOptions o = { .k_type = "q2", .v_type = "q2" };
    for (int m = 0; m < 2; m++) {
        QsfRig r;
        open_rig(&r, &o);
        for (uint32_t i = 0; i < N; i++) {
            eval(&r, false, i, i + 1);
            memcpy(want[i], qsf_forward_logits(r.fwd), sizeof want[i]);
        }
        qsf_forward_truncate(r.fwd, 0);
        eval(&r, false, 0, PROMPT);
        set_exit(&r, EXIT, m == 0 ? 0 : 1e30f);
        for (uint32_t i = PROMPT; i < N - 1; i++) {
            eval(&r, true, i, i + 1);
            if (m == 1) assert_memory_equal(qsf_forward_logits(r.fwd), want[i], sizeof want[i]);
        }
        eval(&r, false, N - 1, N);
        assert_memory_equal(qsf_forward_logits(r.fwd), want[N - 1], sizeof want[0]);
        assert_int_equal(qsf_forward_exact(r.fwd), N);
        assert_int_equal(exited(&r), m == 0 ? N - 1 - PROMPT : 0);
        qsf_rig_close(&r);
    }
}

/* What waits can be evaluated at any time, once. */
static void test_settling(void **state) {
    (void)state;
    QsfRig r;
    QsfErr err = { 0 };
    open_rig(&r, &(QsfRigOptions){ 0 });
    eval(&r, false, 0, PROMPT);
    set_exit(&r, EXIT, 0);
    for (uint32_t i = PROMPT; i < PROMPT + 7; i++) eval(&r, true, i, i + 1);
    assert_int_equal(qsf_forward_exact(r.fwd), PROMPT);
    for (int k = 0; k < 2; k++) {
        qsf_test_expect_ok(qsf_forward_catch_up(r.fwd, &err), &err);
        assert_int_equal(qsf_forward_exact(r.fwd), PROMPT + 7);
        assert_int_equal(qsf_forward_n_past(r.fwd), PROMPT + 7);
    }
    check_tokens(&r, 0, PROMPT + 7, N);
    qsf_rig_close(&r);
}

/* A token that ends early reads nothing of the other layers. */
static void test_less_is_read(void **state) {
    (void)state;
    uint64_t read[2];
    for (int k = 0; k < 2; k++) {
        QsfRig r;
        QsfForwardStats before, after;
        open_rig(&r, &(QsfRigOptions){ .stream = true });
        eval(&r, false, 0, PROMPT);
        set_exit(&r, EXIT, k == 0 ? 1e30f : 0);
        eval(&r, true, PROMPT, PROMPT + 2);
        qsf_forward_stats(r.fwd, &before);
        for (uint32_t i = PROMPT + 2; i < PROMPT + 12; i++) eval(&r, true, i, i + 1);
        qsf_forward_stats(r.fwd, &after);
        read[k] = after.bytes_read - before.bytes_read;
        qsf_rig_close(&r);
    }
    assert_true(read[1] > 0 && read[1] < read[0] * 7 / 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_margin_is_between_the_two_largest),
        cmocka_unit_test(test_where_a_llama_can_exit),
        cmocka_unit_test(test_each_token_decides),
        cmocka_unit_test(test_a_prompt_finds_everything),
        cmocka_unit_test(test_changes_in_between),
        cmocka_unit_test(test_settling),
        cmocka_unit_test(test_with_recent_positions),
        cmocka_unit_test(test_less_is_read),
    };
    return cmocka_run_group_tests(tests, write_model, remove_model);
}
