/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Experts that are read before they are chosen: the same logits with and without, with any number of slots,
 * threads and way to read; a read that fails is an error only if its expert is chosen; a pass that is
 * cancelled while something is read ahead. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/plan/layout.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { ANSWER = 40, VOCAB = 300, BLOCKS = 2, ALL = BLOCKS * QSF_TINY_EXPERTS };

static const char *const four[] = { "llama.expert_used_count=int:4", NULL };
static char path[512];
static uint64_t dense, expert; /* bytes of weights: without experts, and of one expert */

static int write_model(void **state) {
    const QsfRigOptions o = { .path = path };
    QsfShape s;
    QsfErr err = { 0 };
    QsfRig r;
    (void)state;
    snprintf(path, sizeof path, "%s", qsf_test_tmp("ahead.gguf"));
    assert_int_equal(qsf_test_write_tiny_experts(path, 5), 0);
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    qsf_shape_make(&s, &r.model, &r.table);
    expert = s.expert_bytes / s.n_experts;
    dense = s.weight_bytes - s.expert_bytes;
    qsf_rig_close(&r);
    return 0;
}

static int clean(void **state) {
    (void)state;
    qsf_file_inject_fault(UINT64_MAX, 0);
    return unlink(path);
}

static QsfRigOptions with(uint32_t slots, QsfGuessing ahead) {
    return (QsfRigOptions){
        .path = path, .overrides = four, .pin_cap = dense + slots * expert, .ahead = ahead, .threads = 1
    };
}

static int token(const QsfRig *r, uint32_t i, QsfErr *err) {
    const int32_t id = (int32_t)((i * 7919u + i % 5 * 13u) % VOCAB);
    return qsf_forward_eval(r->fwd, &id, 1, NULL, NULL, err);
}

/* (ANSWER, VOCAB) */
static QsfForwardStats answer(const QsfRigOptions *o, float *out) {
    QsfForwardStats s;
    QsfErr err = { 0 };
    QsfRig r;
    qsf_test_expect_ok(qsf_rig_open(&r, o, &err), &err);
    for (uint32_t i = 0; i < ANSWER; i++) {
        qsf_test_expect_ok(token(&r, i, &err), &err);
        memcpy(out + (size_t)i * VOCAB, qsf_forward_logits(r.fwd), VOCAB * sizeof *out);
    }
    qsf_forward_stats(r.fwd, &s);
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
    return s;
}

static void same_logits(void **state) {
    static const uint32_t slots[] = { 4, 6, 9, ALL - 1 };
    static float plain[ANSWER * VOCAB], x[ANSWER * VOCAB];
    uint64_t used = 0;
    (void)state;
    QsfRigOptions o = with(4, QSF_GUESSING_OFF);
    assert_int_equal(answer(&o, plain).ahead_read, 0);
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        for (int threads = 1; threads <= 2; threads++) {
            for (QsfGuessing g = QSF_GUESSING_AUTO; g < QSF_GUESSING_N; g++) {
                o = with(slots[i], g);
                o.threads = threads;
                o.io = (QsfIoKind)((i + (size_t)threads) % QSF_IO_N);
                const QsfForwardStats s = answer(&o, x);
                if (memcmp(x, plain, sizeof x) != 0) fail_msg("other logits with %u slots", slots[i]);
                if (g == QSF_GUESSING_OFF) assert_int_equal(s.ahead_read, 0);
                assert_true(s.ahead_used + s.ahead_wasted <= s.ahead_read);
                assert_true(s.ahead_read <= s.bytes_read);
                used += s.ahead_used;
            }
        }
    }
    assert_true(used > 10 * expert);
}

/* Evaluates token i alone, with a fault in the first matrix of this expert of the last block. Returns whether
 * that fails; adds what was read ahead. */
static bool fails(uint32_t i, uint32_t fault, QsfGuessing ahead, uint64_t *read) {
    QsfRigOptions o = with(ALL - 1, ahead);
    QsfForwardStats s;
    QsfErr err = { 0 };
    QsfRig r;
    o.io = QSF_IO_PREAD;
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    for (uint32_t u = 0; u < r.plan.n_units; u++) {
        QsfUnit unit;
        qsf_unit_at(&r.model, u, &unit);
        if (!unit.on_demand || unit.layer != BLOCKS - 1 || unit.expert != fault) continue;
        qsf_file_inject_fault(unit.offset[0] + unit.bytes / 4, EIO); /* a window that no other one shares */
        break;
    }
    const bool failed = token(&r, i, &err) != QSF_OK;
    if (failed) qsf_test_expect_err(&err, QSF_E_RUNTIME, "ahead.gguf");
    qsf_err_clear(&err);
    qsf_file_inject_fault(UINT64_MAX, 0);
    qsf_forward_stats(r.fwd, &s);
    *read += s.ahead_read;
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
    return failed;
}

/* The same answers fail as without. What was predicted and not chosen is in stream/t_expert_policy.c. */
static void failed_reads(void **state) {
    unsigned chosen = 0;
    uint64_t none = 0, read = 0;
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t id = 0; id < QSF_TINY_EXPERTS; id++) {
            const bool off = fails(i, id, QSF_GUESSING_OFF, &none), on = fails(i, id, QSF_GUESSING_ON, &read);
            if (on != off) fail_msg("token %u, expert %u: %s", i, id, on ? "failed" : "did not fail");
            chosen += on;
        }
    }
    assert_true(chosen > 0 && none == 0 && read > 0);
}

/* Logits of 12 tokens of a model with slots for half of its experts. */
static void answer_of(const char *file, QsfGuessing ahead, float **logits, size_t *n, QsfForwardStats *s) {
    QsfRigOptions o = { .path = file, .ahead = ahead, .io = QSF_IO_PREAD };
    QsfShape shape;
    QsfErr err = { 0 };
    QsfRig r;
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    qsf_shape_make(&shape, &r.model, &r.table);
    qsf_rig_close(&r);
    o.pin_cap = shape.weight_bytes - shape.expert_bytes / 2;
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    const uint32_t vocab = r.model.hp.n_vocab;
    *n = 12 * (size_t)vocab * sizeof **logits;
    *logits = malloc(*n);
    assert_non_null(*logits);
    for (uint32_t i = 0; i < 12; i++) {
        const int32_t id = (int32_t)((i * 31u + 5) % vocab);
        qsf_test_expect_ok(qsf_forward_eval(r.fwd, &id, 1, NULL, NULL, &err), &err);
        memcpy(*logits + (size_t)i * vocab, qsf_forward_logits(r.fwd), vocab * sizeof **logits);
    }
    qsf_forward_stats(r.fwd, s);
    assert_true(r.plan.expert_slots > 0);
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
}

static void architectures(void **state) {
    static const char *const names[] = {
        "afmoe",          "arctic",     "bailingmoe2", "cohere2moe", "dbrx",      "deepseek2",  "dots1",
        "ernie4_5-moe",   "exaone-moe", "gemma4_moe",  "glm4moe",    "gpt-oss",   "granitemoe", "grok",
        "hunyuan-moe",    "jamba",      "kimi-linear", "lfm2moe",    "llama4",    "llama_moe",  "minimax-m2",
        "nemotron_h_moe", "olmoe",      "phimoe",      "qwen2moe",   "qwen35moe", "qwen3moe",   "qwen3next",
        "smallthinker",   "step35",     "grovemoe"
    };
    unsigned seen = 0, ahead = 0;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        float *plain, *x;
        size_t n;
        QsfForwardStats s;
        char file[100];
        snprintf(file, sizeof file, "architectures/%s/model.gguf", names[i]);
        const char *model = qsf_test_data(file);
        if (model == NULL) continue;
        answer_of(model, QSF_GUESSING_OFF, &plain, &n, &s);
        answer_of(model, QSF_GUESSING_ON, &x, &n, &s);
        if (memcmp(plain, x, n) != 0) fail_msg("%s: other logits", names[i]);
        seen++;
        ahead += s.ahead_read > 0;
        free(plain);
        free(x);
    }
    if (seen == 0) skip();
    assert_true(ahead > seen / 2);
}

typedef struct Stop {
    QsfRig *r;
    uint32_t block;
} Stop;

static void stop(void *arg, const QsfTapData *t) {
    Stop *s = arg;
    const QsfStep *step = &s->r->model.prog.step[t->step];
    if (step->block == s->block && step->op == QSF_OP_EXPERTS) atomic_store(&s->r->cancel, 1);
}

/* In the first block, while what is predicted for the second one is read. */
static void cancelled(void **state) {
    static float plain[ANSWER * VOCAB];
    QsfRigOptions o = with(6, QSF_GUESSING_ON);
    QsfErr err = { 0 };
    QsfRig r;
    Stop s = { &r, 0 };
    (void)state;
    (void)answer(&o, plain);
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    for (uint32_t i = 0; i < ANSWER; i++) {
        qsf_forward_tap(r.fwd, stop, &s);
        assert_int_equal(token(&r, i, &err), QSF_E_INTERRUPTED);
        qsf_err_clear(&err);
        atomic_store(&r.cancel, 0);
        qsf_forward_tap(r.fwd, NULL, NULL);
        qsf_test_expect_ok(token(&r, i, &err), &err);
        assert_memory_equal(qsf_forward_logits(r.fwd), plain + (size_t)i * VOCAB, VOCAB * sizeof(float));
    }
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(same_logits), cmocka_unit_test(failed_reads),
                                        cmocka_unit_test(architectures), cmocka_unit_test(cancelled) };
    return cmocka_run_group_tests(tests, write_model, clean);
}
