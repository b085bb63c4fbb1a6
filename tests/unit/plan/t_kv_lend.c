/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Weights in memory that the KV cache does not use yet: the same logits at every position, never more
 * memory than a full context and its pins take, fewer bytes read while the context is short, and memory
 * that comes back with /clear. */
#include "tests/harness/qsf_test.h"

#include "src/forward/forward_impl.h"
#include "src/forward/kv_room.h"
#include "src/plan/kv_lend.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/rig.h"

enum { PROMPT = 50, FEW = 10, STEP = 32 };

static int32_t id_at(uint32_t pos, uint32_t n_vocab) { return (int32_t)(3 + pos * 37u % (n_vocab - 30)); }

/* Memory that is lent weights beyond the plan's pins. */
static uint64_t lent_pins(const QsfRig *r) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r->plan.n_units; i++) {
        const QsfUnit *u = qsf_weights_unit(r->fwd->weights, i);
        sum += qsf_unit_pinned_bytes(u, qsf_weights_items(r->fwd->weights, i)) -
               qsf_unit_pinned_bytes(u, r->plan.pinned_items[i]);
    }
    return sum;
}

static uint64_t streamed(const QsfRig *r) {
    QsfForwardStats s;
    qsf_forward_stats(r->fwd, &s);
    return s.streamed_bytes;
}

/* Positions [n_past, to): the first PROMPT of a conversation at once, then one by one, as a
 * token loop does it. */
static void eval_to(QsfRig *r, uint32_t to, float *logits) {
    QsfErr err = { 0 };
    int32_t ids[PROMPT];
    const uint32_t n_vocab = r->model.hp.n_vocab;
    uint64_t before = streamed(r);
    qsf_ledger_freeze(&r->ledger);
    for (uint32_t pos = qsf_forward_n_past(r->fwd); pos < to; pos = qsf_forward_n_past(r->fwd)) {
        const uint32_t n = pos == 0 ? PROMPT : 1;
        for (uint32_t i = 0; i < n; i++) ids[i] = id_at(pos + i, n_vocab);
        qsf_test_expect_ok(qsf_forward_eval(r->fwd, ids, n, NULL, NULL, &err), &err);
        memcpy(logits + (pos + n - 1) * n_vocab, qsf_forward_logits(r->fwd), n_vocab * sizeof *logits);
        assert_true(r->ledger.total <= r->ledger.limit);
        assert_true(streamed(r) >= before);
        before = streamed(r);
    }
    qsf_ledger_thaw(&r->ledger);
    assert_int_equal(r->ledger.refused_frozen, 0);
}

/* Nothing may take more than the plan with a full context. */
static void limit_to_plan(QsfRig *r) {
    const uint64_t room = qsf_reserve_lent(r->fwd, r->plan.ctx, r->plan.kv, r->fwd->kv.reserved),
                   held = lent_pins(r);
    assert_true(held <= room);
    qsf_ledger_set_limit(&r->ledger, r->ledger.total - held + room);
}

/* Bytes read for the next few tokens, within one step. */
static uint64_t bytes_read(QsfRig *r, float *logits) {
    QsfForwardStats a, b;
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_forward_settle(r->fwd, NULL, NULL, &err), &err);
    qsf_forward_stats(r->fwd, &a);
    eval_to(r, qsf_forward_n_past(r->fwd) + FEW, logits);
    qsf_forward_stats(r->fwd, &b);
    return b.bytes_read - a.bytes_read;
}

/* Other types between two steps, and back: within the memory of the plan for f16, and as much
 * of it as before in the end. */
static void convert(QsfRig *r, float *logits) {
    QsfErr err = { 0 };
    QsfPlan p = r->plan;
    const uint64_t room = qsf_reserve_lent(r->fwd, p.ctx, p.kv, r->fwd->kv.reserved);
    const uint32_t past = qsf_forward_n_past(r->fwd);
    p.kv = (QsfKvTypes){ QK_KV_Q8, QK_KV_F16 };
    qsf_test_expect_ok(qsf_forward_replan(r->fwd, &p, r->pool, &err), &err);
    const uint64_t less = qsf_reserve_lent(r->fwd, p.ctx, p.kv, r->fwd->kv.reserved);
    assert_true(r->ledger.total <= r->ledger.limit && lent_pins(r) <= less && less < room);
    assert_int_equal(qsf_forward_n_past(r->fwd), past);
    eval_to(r, past + FEW, logits);
    qsf_test_expect_ok(qsf_forward_replan(r->fwd, &r->plan, r->pool, &err), &err);
    assert_true(r->ledger.total <= r->ledger.limit && lent_pins(r) <= room);
}

static void check_model(const char *path, uint32_t ctx, uint64_t pin_cap) {
    QsfRigOptions o = { .path = path, .ctx = ctx, .threads = 2, .level = QK_LEVEL_UNKNOWN };
    QsfRig r;
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    const size_t bytes = (size_t)ctx * r.model.hp.n_vocab * sizeof(float);
    float *want = calloc(1, bytes), *got = calloc(1, bytes);
    eval_to(&r, ctx, want);
    qsf_rig_close(&r);
    o.pin_cap = pin_cap;
    o.kv_step = STEP;
    o.n_slots = 2; /* small ones, so that little is read ahead */
    o.slot_bytes = 1;
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    limit_to_plan(&r);
    const uint64_t at_start = streamed(&r);
    assert_true(r.plan.streamed_bytes > 0 && at_start < r.plan.streamed_bytes);
    assert_int_equal(r.fwd->kv.reserved, STEP);
    eval_to(&r, PROMPT, got);
    assert_int_equal(r.fwd->kv.reserved, 2 * STEP); /* what the prompt needs, at once */
    const uint64_t early = bytes_read(&r, got);
    eval_to(&r, ctx - FEW, got);
    const uint64_t late = bytes_read(&r, got);
    assert_true(early < late);
    assert_int_equal(streamed(&r), r.plan.streamed_bytes); /* the plan's pins, and nothing else */
    assert_int_equal(lent_pins(&r), 0);
    assert_memory_equal(want, got, bytes);
    /* A new conversation has the memory again; going back a little leaves it where it is. */
    qsf_forward_truncate(r.fwd, ctx - 9);
    qsf_forward_expect(r.fwd, 9);
    assert_int_equal(lent_pins(&r), 0);
    eval_to(&r, ctx, got);
    qsf_forward_truncate(r.fwd, 0);
    qsf_forward_expect(r.fwd, ctx - 1); /* a prompt that needs it all */
    assert_int_equal(lent_pins(&r), 0);
    qsf_forward_expect(r.fwd, 1);
    assert_int_equal(streamed(&r), at_start);
    memset(got, 0, bytes);
    eval_to(&r, ctx, got);
    assert_memory_equal(want, got, bytes);
    qsf_forward_truncate(r.fwd, 0);
    qsf_forward_expect(r.fwd, 1);
    eval_to(&r, PROMPT, got);
    convert(&r, got);
    eval_to(&r, ctx, got);
    assert_int_equal(lent_pins(&r), 0);
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
    free(want);
    free(got);
}

static void test_dense(void **state) {
    (void)state;
    const char *path = qsf_test_tmp("lend.gguf");
    for (int tied = 0; tied < 2; tied++) {
        const QsfTinySpec spec = { .layers = 5,
                                   .hidden = 128,
                                   .heads = 4,
                                   .kv_heads = 4,
                                   .ffn = 384,
                                   .ctx = 320,
                                   .wtype = tied ? 8 : 0,
                                   .tied = tied };
        assert_int_equal(qsf_test_write_tiny_llama(path, &spec), 0);
        check_model(path, 320, tied ? 200000 : 1500000);
    }
    unlink(path);
}

/* Experts are pinned whole. */
static void test_experts(void **state) {
    (void)state;
    const char *path = qsf_test_tmp("lendmoe.gguf");
    assert_int_equal(qsf_test_write_tiny_experts(path, 3), 0);
    check_model(path, 1600, 250000);
    unlink(path);
}

/* Windows and recurrent states beside a cache, and compressed rows. */
static void test_kinds(void **state) {
    static const char *const name[] = { "gemma3", "falcon-h1", "deepseek2" };
    unsigned seen = 0;
    (void)state;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        char file[64];
        snprintf(file, sizeof file, "architectures/%s/model.gguf", name[i]);
        const char *path = qsf_test_data(file);
        if (path == NULL) continue;
        seen++;
        check_model(path, 320, 60000);
    }
    if (seen == 0) skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_experts),
        cmocka_unit_test(test_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
