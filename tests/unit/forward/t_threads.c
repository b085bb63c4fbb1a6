/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers of threads that change while they are measured: the same logits, bit for bit; what is measured, and
 * what is said about it. */
#include "src/forward/forward_impl.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { VOCAB = 300, N_PROMPT = 40, N_TOKENS = 60 };

static char path[512];
static int32_t ids[N_TOKENS];

static int setup(void **state) {
    (void)state;
    snprintf(path, sizeof path, "%s", qsf_test_tmp("threads.gguf"));
    for (int i = 0; i < N_TOKENS; i++) ids[i] = (i * 7919 + i % 7) % VOCAB;
    return qsf_test_write_tiny_llama(path, &(QsfTinySpec){ .wtype = 8, .layers = 6 });
}

static int teardown(void **state) {
    (void)state;
    return unlink(path);
}

static void open_rig(QsfRig *r, int threads, bool measured) {
    QsfErr err = { 0 };
    const QsfRigOptions o = {
        .path = path, .threads = threads, .measured = measured, .ctx = 128, .batch = 20, .level = QK_LEVEL_REF
    };
    qsf_test_expect_ok(qsf_rig_open(r, &o, &err), &err);
    qsf_test_expect_ok(qsf_forward_settle(r->fwd, NULL, NULL, &err), &err);
}

/* Numbers that do not depend on this machine, and short turns. */
static void make_races(QsfThreads *t) {
    static const QsfWidth w[] = { { 1, "one" }, { 2, "two" }, { 3, "three" }, { 4, "four" } };
    qsf_race_init(&t->decode, w, 4, 2, true, 100000);
    qsf_race_init(&t->prefill, w, 4, 3, false, 100000);
}

/* A prompt in two chunks, and tokens; logits (N_TOKENS - N_PROMPT + 1, VOCAB). */
static void converse(QsfRig *r, float *logits) {
    QsfErr err = { 0 };
    qsf_forward_truncate(r->fwd, 0);
    qsf_test_expect_ok(qsf_forward_eval(r->fwd, ids, N_PROMPT, NULL, NULL, &err), &err);
    for (int i = N_PROMPT;; i++) {
        memcpy(logits + (size_t)(i - N_PROMPT) * VOCAB, qsf_forward_logits(r->fwd), VOCAB * sizeof *logits);
        if (i == N_TOKENS) return;
        qsf_test_expect_ok(qsf_forward_decode(r->fwd, ids + i, 1, NULL, NULL, &err), &err);
    }
}

static void expect_text(const QsfRig *r, const char *part) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_forward_threads_text(r->fwd, &b);
    if (strstr(qsf_strbuf_str(&b), part) == NULL) fail_msg("no \"%s\" in:\n%s", part, qsf_strbuf_str(&b));
    qsf_strbuf_free(&b);
}

static void test_same_logits(void **state) {
    (void)state;
    static float want[(N_TOKENS - N_PROMPT + 1) * VOCAB], got[(N_TOKENS - N_PROMPT + 1) * VOCAB];
    QsfRig r;
    open_rig(&r, 1, false);
    converse(&r, want);
    expect_text(&r, "threads: 1, as set\n");
    qsf_rig_close(&r);

    open_rig(&r, 4, true);
    QsfThreads *t = &r.fwd->threads;
    make_races(t);
    for (int i = 0; t->decode.races == 0 || t->prefill.races == 0; i++) {
        if (i == 3000) fail_msg("%u and %u races in %d conversations", t->decode.races, t->prefill.races, i);
        converse(&r, got);
        assert_memory_equal(got, want, sizeof want);
    }
    for (int i = 0; i < 4; i++) assert_true(t->decode.runner[i].speed > 0 && t->prefill.runner[i].speed > 0);
    QsfForwardStats s;
    qsf_forward_stats(r.fwd, &s);
    assert_int_equal(s.threads, t->decode.runner[t->decode.best].width.threads);
    assert_int_equal(s.prefill_threads, t->prefill.runner[t->prefill.best].width.threads);
    expect_text(&r, "for tokens; measured: ");
    expect_text(&r, "for prompts; measured: ");
    expect_text(&r, "1.00");
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
}

/* A number from the user: nothing is measured. Between two tokens it may be left to the engine, and be set
 * again. */
static void test_as_set(void **state) {
    (void)state;
    static float got[(N_TOKENS - N_PROMPT + 1) * VOCAB];
    QsfRig r;
    QsfErr err = { 0 };
    open_rig(&r, 3, false);
    for (int i = 0; i < 30; i++) converse(&r, got);
    assert_int_equal(qsf_pool_used(r.pool), 3);
    assert_true(r.fwd->threads.decode.races == 0 && !r.fwd->threads.decode.warm);
    expect_text(&r, "threads: 3, as set\n");
    r.plan.threads_auto = true;
    qsf_test_expect_ok(qsf_forward_replan(r.fwd, &r.plan, r.pool, &err), &err);
    expect_text(&r, "for tokens; ");
    make_races(&r.fwd->threads);
    converse(&r, got);
    assert_true(r.fwd->threads.decode.warm && r.fwd->threads.prefill.warm);
    r.plan.threads_auto = false;
    qsf_test_expect_ok(qsf_forward_replan(r.fwd, &r.plan, r.pool, &err), &err);
    assert_int_equal(qsf_pool_used(r.pool), 3);
    converse(&r, got);
    assert_int_equal(qsf_pool_used(r.pool), 3);
    expect_text(&r, "threads: 3, as set\n");
    qsf_rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_same_logits), cmocka_unit_test(test_as_set) };
    return cmocka_run_group_tests(tests, setup, teardown);
}
