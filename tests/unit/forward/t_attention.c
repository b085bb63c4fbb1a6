/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention over more than one span of positions: a token gives the same logits alone, where threads share
 * the spans of its heads, and in the middle of a prompt, for any thread count and chunk size. */
#include "kernels/kv.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum {
    CTX = 2 * QK_KV_SPAN + 40,
    PROMPT = 2 * QK_KV_SPAN + 17,
    FIRST = QK_KV_SPAN - 4,
    STEPS = 9,
    VOCAB = 300
};

static const char *model_file(const QsfTinySpec *spec) {
    static char path[512];
    snprintf(path, sizeof path, "%s", qsf_test_tmp("attention.gguf"));
    assert_int_equal(qsf_test_write_tiny_llama(path, spec), 0);
    return path;
}

static void eval(QsfRig *r, uint32_t n) {
    static int32_t ids[CTX];
    QsfErr err = { 0 };
    uint32_t past = qsf_forward_n_past(r->fwd);
    for (uint32_t i = 0; i < n; i++) ids[i] = (int32_t)(((past + i) * 7919u + 1) % VOCAB);
    qsf_test_expect_ok(qsf_forward_eval(r->fwd, ids, n, NULL, NULL, &err), &err);
}

/* Logits after STEPS positions starting at FIRST, one at a time, and after the whole prompt and one more
 * step. */
typedef struct Seen {
    float steps[STEPS][VOCAB], prompt[VOCAB], last[VOCAB];
} Seen;

static void run(Seen *s, const QsfRigOptions *o, bool one_by_one) {
    QsfRig r;
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_rig_open(&r, o, &err), &err);
    eval(&r, FIRST);
    for (uint32_t i = 0; i < STEPS; i++) {
        if (!one_by_one) qsf_forward_truncate(r.fwd, FIRST - 50);
        eval(&r, FIRST + i + 1 - qsf_forward_n_past(r.fwd));
        memcpy(s->steps[i], qsf_forward_logits(r.fwd), sizeof s->steps[i]);
    }
    eval(&r, PROMPT - FIRST - STEPS);
    memcpy(s->prompt, qsf_forward_logits(r.fwd), sizeof s->prompt);
    eval(&r, 1);
    memcpy(s->last, qsf_forward_logits(r.fwd), sizeof s->last);
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
}

static void check(const QsfTinySpec *spec, qk_level level) {
    static Seen want, got;
    static const QsfRigOptions ways[] = { { .threads = 1, .batch = 33 }, { .threads = 3, .batch = 64 } };
    const char *path = model_file(spec);
    const QsfRigOptions base = { .path = path, .threads = 1, .batch = 256, .ctx = CTX, .level = level };
    run(&want, &base, false);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        QsfRigOptions o = ways[i];
        o.path = path;
        o.ctx = CTX;
        o.level = level;
        memset(&got, 0, sizeof got);
        run(&got, &o, i == 1);
        assert_memory_equal(&got, &want, sizeof got);
    }
    unlink(path);
}

static void test_spans(void **state) {
    (void)state;
    const QsfTinySpec grouped = {
        .layers = 1, .hidden = 64, .heads = 8, .kv_heads = 1, .ffn = 32, .ctx = CTX
    };
    const QsfTinySpec each = { .layers = 1, .hidden = 64, .heads = 4, .kv_heads = 4, .ffn = 32, .ctx = CTX };
    check(&grouped, QK_LEVEL_UNKNOWN);
    check(&each, QK_LEVEL_UNKNOWN);
    check(&grouped, QK_LEVEL_REF);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_spans) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
