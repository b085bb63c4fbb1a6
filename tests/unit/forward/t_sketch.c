/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The head by its sketch: the largest logit is that of the whole head, whatever the threads, the budget and
 * the level; a model that is not sure needs more of the head; the KV cache is as without it. */
#include <float.h>

#include "src/forward/forward_impl.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { VOCAB = 33000, PROMPT = 12, TOKENS = 20 };

/* The tied one predicts the token that it reads, and is mostly sure of it; the others know nothing, and the
 * rows of the last one's head have almost everything in common. */
typedef enum Kind { SURE, UNSURE, ALIKE, KINDS } Kind;
static char path[KINDS][512];

static int setup(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        static const char *const name[KINDS] = { "sure.gguf", "unsure.gguf", "alike.gguf" };
        const QsfTinySpec spec = {
            .hidden = 128, .vocab = VOCAB, .wtype = 8, .tied = k == SURE, .head_mean = k == ALIKE ? 2 : 0
        };
        snprintf(path[k], sizeof path[k], "%s", qsf_test_tmp(name[k]));
        if (qsf_test_write_tiny_llama(path[k], &spec) != 0) return -1;
    }
    return 0;
}

static int teardown(void **state) {
    (void)state;
    return unlink(path[SURE]) | unlink(path[UNSURE]) | unlink(path[ALIKE]);
}

static void open_as(QsfRig *r, Kind kind, float quality, QsfRigOptions o) {
    QsfErr err = { 0 };
    o.path = path[kind];
    o.quality = quality;
    qsf_test_expect_ok(qsf_rig_open(r, &o, &err), &err);
    assert_true((r->plan.sketch_bytes > 0) == (quality > 0));
}

static int32_t id_at(uint32_t i) { return (int32_t)((i * 7919u + 11) % VOCAB); }

static void prompt(QsfRig *r) {
    int32_t ids[PROMPT];
    QsfErr err = { 0 };
    for (uint32_t i = 0; i < PROMPT; i++) ids[i] = id_at(i);
    qsf_test_expect_ok(qsf_forward_eval(r->fwd, ids, PROMPT, NULL, NULL, &err), &err);
}

static const float *decode(QsfRig *r, uint32_t i) {
    const int32_t id = id_at(i);
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_forward_decode(r->fwd, &id, 1, NULL, NULL, &err), &err);
    return qsf_forward_logits(r->fwd);
}

static const QsfRigOptions best = { .level = QK_LEVEL_UNKNOWN };

/* Against a pass without a sketch. */
static void check_kind(Kind kind, QsfRigOptions o) {
    uint64_t rows = 0;
    QsfForwardStats s;
    QsfRig a, b;
    open_as(&a, kind, 0, o);
    open_as(&b, kind, 0.9f, o);
    prompt(&a);
    prompt(&b);
    for (uint32_t i = PROMPT; i < PROMPT + TOKENS; i++) {
        const float *want = decode(&a, i), *got = decode(&b, i);
        const size_t top = a.table.argmax(want, VOCAB);
        assert_int_equal(b.table.argmax(got, VOCAB), top);
        assert_memory_equal(&got[top], &want[top], sizeof *got);
        uint32_t same = 0;
        for (uint32_t v = 0; v < VOCAB; v++) same += memcmp(&got[v], &want[v], sizeof *got) == 0;
        qsf_forward_stats(b.fwd, &s);
        /* Of the other rows hardly one is exact by chance. */
        assert_true(same + 16 >= s.head_rows - rows && same < s.head_rows - rows + VOCAB / 64);
        rows = s.head_rows;
    }
    qsf_forward_stats(b.fwd, &s);
    assert_int_equal(s.head_sketched, TOKENS);
    const double part = qsf_forward_head_part(&s, VOCAB);
    assert_true(part > 1.0 / 65 && part < (kind == SURE ? 0.05 : 0.3));
    assert_int_equal(qsf_forward_exact(b.fwd), PROMPT + TOKENS); /* no position lacks anything */
    prompt(&a);
    prompt(&b);
    assert_memory_equal(qsf_forward_logits(a.fwd), qsf_forward_logits(b.fwd), VOCAB * sizeof(float));
    assert_int_equal(b.ledger.used[QSF_MEM_PINNED] - a.ledger.used[QSF_MEM_PINNED], b.plan.sketch_bytes);
    qsf_rig_close(&a);
    qsf_rig_close(&b);
    assert_int_equal(qsf_rig_leak(&b), 0);
}

static void test_resident(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++) check_kind((Kind)k, best);
}

static void test_streamed(void **state) {
    (void)state;
    QsfRigOptions o = best;
    o.stream = true;
    for (int k = 0; k < KINDS; k++) check_kind((Kind)k, o);
}

static void test_plain_kernels(void **state) {
    (void)state;
    const QsfRigOptions o = { .level = QK_LEVEL_REF };
    for (int k = 0; k < KINDS; k++) check_kind((Kind)k, o);
}

/* Nothing depends on threads or on where the head is. */
static void test_same(void **state) {
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        QsfRigOptions o = best;
        QsfRig a, b;
        open_as(&a, (Kind)k, 0.9f, o);
        o.threads = 3;
        o.stream = true;
        open_as(&b, (Kind)k, 0.5f, o);
        prompt(&a);
        prompt(&b);
        for (uint32_t i = PROMPT; i < PROMPT + TOKENS; i++)
            assert_memory_equal(decode(&a, i), decode(&b, i), VOCAB * sizeof(float));
        qsf_rig_close(&a);
        qsf_rig_close(&b);
    }
}

/* While weights stream, the head is not read but for the rows that are needed. */
static void test_bytes(void **state) {
    (void)state;
    QsfForwardStats s;
    QsfRigOptions o = best;
    QsfRig r;
    o.stream = true;
    open_as(&r, SURE, 0.9f, o);
    prompt(&r);
    decode(&r, PROMPT); /* makes the sketch */
    qsf_forward_stats_reset(r.fwd);
    for (uint32_t i = PROMPT + 1; i < PROMPT + 1 + TOKENS; i++) decode(&r, i);
    qsf_forward_stats(r.fwd, &s);
    const QsfUnit *head = qsf_weights_unit(r.fwd->weights, r.plan.n_units - 1);
    assert_true(s.bytes_read / TOKENS < r.plan.weight_bytes - head->bytes + head->bytes / 16);
    assert_true(r.plan.disk_bytes < r.plan.weight_bytes - head->bytes + head->bytes / 16);
    qsf_rig_close(&r);
}

static void test_cancelled(void **state) {
    (void)state;
    const int32_t id = 5;
    QsfErr err = { 0 };
    QsfRig r;
    open_as(&r, SURE, 0.9f, best);
    prompt(&r);
    atomic_store(&r.cancel, 1);
    assert_int_equal(qsf_forward_decode(r.fwd, &id, 1, NULL, NULL, &err), QSF_E_INTERRUPTED);
    atomic_store(&r.cancel, 0);
    assert_int_equal(qsf_forward_n_past(r.fwd), PROMPT);
    decode(&r, PROMPT);
    assert_true(r.fwd->sketch.filled);
    qsf_rig_close(&r);
}

/* The plan that has no sketch frees it, and the quality then has no effect on the head. */
static void test_replan(void **state) {
    (void)state;
    QsfErr err = { 0 };
    QsfRig a, b;
    open_as(&a, SURE, 0, best);
    open_as(&b, SURE, 0.9f, best);
    prompt(&a);
    prompt(&b);
    const uint64_t with = b.ledger.used[QSF_MEM_PINNED], sketch = b.plan.sketch_bytes;
    decode(&a, PROMPT);
    decode(&b, PROMPT);
    b.plan.sketch_bytes = 0;
    qsf_test_expect_ok(qsf_forward_replan(b.fwd, &b.plan, b.pool, &err), &err);
    assert_int_equal(b.ledger.used[QSF_MEM_PINNED], with - sketch);
    assert_memory_equal(decode(&a, PROMPT + 1), decode(&b, PROMPT + 1), VOCAB * sizeof(float));
    b.plan.sketch_bytes = sketch;
    qsf_test_expect_ok(qsf_forward_replan(b.fwd, &b.plan, b.pool, &err), &err);
    assert_memory_not_equal(decode(&a, PROMPT + 2), decode(&b, PROMPT + 2), VOCAB * sizeof(float));
    qsf_rig_close(&a);
    qsf_rig_close(&b);
    assert_int_equal(qsf_rig_leak(&b), 0);
}

/* Small heads, and those that are a small part of a model, have none. */
static void test_models(void **state) {
    (void)state;
    static const struct {
        QsfShapeSpec spec;
        bool has;
    } cases[] = {
        { { 26, 1152, 4, 1, 6912, 262144, 4096, true, 8 }, true },  /* Gemma 3 1B */
        { { 28, 1024, 16, 8, 3072, 151936, 4096, true, 8 }, true }, /* Qwen3 0.6B */
        { { 16, 2048, 32, 8, 8192, 128256, 4096, true, 12 }, true },
        { { 22, 2048, 32, 4, 5632, 32000, 4096, false, 2 }, false },
        { { 32, 4096, 32, 8, 14336, 128256, 4096, false, 12 }, false },
        { { 2, 96, 4, 2, 128, 40000, 256, false, 8 }, false }, /* no whole block of the sketch */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        QsfSketchShape s;
        QsfQuality q = { .value = 0.9f };
        QsfModel m;
        qsf_shape_model(&m, &cases[i].spec);
        assert_int_equal(qsf_sketch_shape(&m, 2, &s), cases[i].has);
        qsf_quality_sketch(&q, &m);
        assert_int_equal(q.head.groups > 0, cases[i].has);
        if (cases[i].has) {
            const uint64_t less = qsf_quality_bytes(&(QsfQuality){ .value = 1 }, &m) -
                                  qsf_quality_bytes(&q, &m);
            QsfUnit u;
            qsf_unit_at(&m, s.unit, &u);
            assert_true(less > u.bytes / 2 && less < u.bytes);
        }
        qsf_shape_model_free(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resident),      cmocka_unit_test(test_streamed),
        cmocka_unit_test(test_plain_kernels), cmocka_unit_test(test_same),
        cmocka_unit_test(test_bytes),         cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_replan),        cmocka_unit_test(test_models),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
