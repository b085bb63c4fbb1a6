/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Experts in slots: the same logits, bit for bit, with any number of slots, threads and columns, with
 * every way to read, and when the number changes between two tokens; what is in memory is not read
 * again; after a read that failed the conversation continues. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/plan/layout.h"
#include "src/plan/units.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { PROMPT = 37, ANSWER = 24, VOCAB = 300, BLOCKS = 2, ALL = BLOCKS * QSF_TINY_EXPERTS, USED = 4 };

/* Four experts of a position: the sum of two is the same in either order. */
static const char *const four[] = { "llama.expert_used_count=int:4", NULL };
static char path[512];
static uint64_t dense, expert; /* bytes of weights: without experts, and of one expert */

static int write_model(void **state) {
    QsfRigOptions o = { .path = path, .overrides = four };
    QsfRig r;
    QsfErr err = { 0 };
    QsfShape s;
    (void)state;
    snprintf(path, sizeof path, "%s", qsf_test_tmp("experts.gguf"));
    assert_int_equal(qsf_test_write_tiny_experts(path, 5), 0);
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    qsf_shape_make(&s, &r.model, &r.table);
    assert_int_equal(s.n_experts, ALL);
    expert = s.expert_bytes / ALL;
    dense = s.weight_bytes - s.expert_bytes;
    qsf_rig_close(&r);
    return 0;
}

static int clean(void **state) {
    (void)state;
    qsf_file_inject_fault(UINT64_MAX, 0);
    unlink(path);
    return 0;
}

static uint64_t room_for(uint32_t slots) { return dense + slots * expert; }

static void token(const QsfRig *r, uint32_t i, QsfForwardStats *before, QsfErr *err) {
    const int32_t id = (int32_t)((i * 7919u + i % 5 * 13u) % VOCAB);
    if (before != NULL) qsf_forward_stats(r->fwd, before);
    qsf_test_expect_ok(qsf_forward_eval(r->fwd, &id, 1, NULL, NULL, err), err);
}

static void prompt(const QsfRig *r, QsfErr *err) {
    int32_t ids[PROMPT];
    for (uint32_t i = 0; i < PROMPT; i++) ids[i] = (int32_t)((i * 31u + i * i % 17u) % VOCAB);
    qsf_test_expect_ok(qsf_forward_eval(r->fwd, ids, PROMPT, NULL, NULL, err), err);
}

/* (ANSWER, VOCAB): of a prompt and an answer. */
static void conversation(const QsfRigOptions *o, uint32_t slots, float *out) {
    QsfRig r;
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_rig_open(&r, o, &err), &err);
    assert_int_equal(r.plan.expert_slots, slots);
    if (slots > 0) { /* the memory of slots for layers is theirs */
        assert_int_equal(r.plan.n_slots, 0);
        assert_int_equal(r.plan.rows[QSF_MEM_SLOTS], 0);
    }
    prompt(&r, &err);
    for (uint32_t i = 0; i < ANSWER; i++) {
        token(&r, i, NULL, &err);
        memcpy(out + (size_t)i * VOCAB, qsf_forward_logits(r.fwd), VOCAB * sizeof *out);
    }
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
}

static float *expected(void) {
    static float x[ANSWER * VOCAB];
    static bool known;
    const QsfRigOptions o = { .path = path, .overrides = four };
    if (!known) conversation(&o, 0, x);
    known = true;
    return x;
}

static void check(const QsfRigOptions *o, uint32_t slots) {
    static float x[ANSWER * VOCAB];
    conversation(o, slots, x);
    if (memcmp(x, expected(), sizeof x) != 0)
        fail_msg("other logits with %u slots, %d threads, %u columns", slots, o->threads, o->batch);
}

static void same_logits(void **state) {
    static const uint32_t slots[] = { 4, 5, 7, 12, ALL - 1 }, batch[] = { 1, 3, 16 };
    (void)state;
    for (size_t s = 0; s < sizeof slots / sizeof *slots; s++)
        for (size_t b = 0; b < sizeof batch / sizeof *batch; b++)
            for (int threads = 1; threads <= 2; threads++)
                check(&(QsfRigOptions){ .path = path,
                                        .overrides = four,
                                        .pin_cap = room_for(slots[s]),
                                        .batch = batch[b],
                                        .threads = threads },
                      slots[s]);
}

static void every_way_to_read(void **state) {
    (void)state;
    for (QsfIoKind io = QSF_IO_AUTO; io < QSF_IO_N; io++)
        check(&(QsfRigOptions){ .path = path, .overrides = four, .pin_cap = room_for(5), .io = io }, 5);
}

/* All experts, or too few slots for the choice of one position. */
static void no_slots(void **state) {
    (void)state;
    check(&(QsfRigOptions){ .path = path, .overrides = four, .pin_cap = room_for(ALL) }, 0);
    check(&(QsfRigOptions){ .path = path, .overrides = four, .pin_cap = room_for(3) }, 0);
    check(&(QsfRigOptions){ .path = path, .overrides = four, .pin_cap = dense / 2 }, 0);
}

static void levels(void **state) {
    (void)state;
    for (qk_level l = QK_LEVEL_REF; l <= qk_cpu_best(); l++) {
        static float all[ANSWER * VOCAB], some[ANSWER * VOCAB];
        QsfRigOptions o = { .path = path, .overrides = four, .level = l };
        if (!qk_cpu_has(l)) continue;
        conversation(&o, 0, all);
        o.pin_cap = room_for(6);
        conversation(&o, 6, some);
        assert_memory_equal(all, some, sizeof all);
    }
}

/* Memory that the KV cache does not need yet holds experts. */
static void lent_memory(void **state) {
    (void)state;
    check(
        &(QsfRigOptions){
            .path = path, .overrides = four, .pin_cap = room_for(5), .kv_step = 32, .ctx = 256 },
        5);
}

static uint64_t read_for(const QsfRig *r, uint32_t i, QsfErr *err) {
    QsfForwardStats a, b;
    token(r, i, &a, err);
    qsf_forward_stats(r->fwd, &b);
    return b.bytes_read - a.bytes_read;
}

/* The same position again and again: its experts are read once, and only they. */
static void kept(void **state) {
    const QsfRigOptions o = { .path = path, .overrides = four, .pin_cap = room_for(USED * BLOCKS) };
    QsfErr err = { 0 };
    QsfRig r;
    (void)state;
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    const uint64_t first = read_for(&r, 0, &err);
    assert_true(first >= USED * BLOCKS * expert);
    for (unsigned i = 0; i < 5; i++) {
        qsf_forward_truncate(r.fwd, 0);
        const uint64_t again = read_for(&r, 0, &err);
        if (again >= expert) fail_msg("%llu bytes were read again", (unsigned long long)again);
    }
    qsf_rig_close(&r);
}

static void set_slots(QsfRig *r, uint32_t slots, QsfErr *err) {
    r->plan.expert_slots = slots;
    qsf_test_expect_ok(qsf_forward_replan(r->fwd, &r->plan, r->pool, err), err);
}

/* The number of slots changes after every token. */
static void other_sizes(void **state) {
    static const uint32_t slots[] = { 4, 16, 9, 5, 4, 15, 4, 6 };
    const QsfRigOptions o = { .path = path, .overrides = four, .pin_cap = room_for(8), .threads = 2 };
    QsfErr err = { 0 };
    QsfRig r;
    (void)state;
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    prompt(&r, &err);
    for (uint32_t i = 0; i < ANSWER; i++) {
        set_slots(&r, slots[i % (sizeof slots / sizeof *slots)], &err);
        token(&r, i, NULL, &err);
        assert_memory_equal(qsf_forward_logits(r.fwd), expected() + (size_t)i * VOCAB, VOCAB * sizeof(float));
    }
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
}

/* Free slots are filled before anything is asked for, and what is read then is not read again. */
static void filled_ahead(void **state) {
    const QsfRigOptions o = { .path = path, .overrides = four, .pin_cap = room_for(ALL - 1) };
    QsfErr err = { 0 };
    QsfForwardStats s;
    QsfRig r;
    bool more = true;
    unsigned steps = 0;
    (void)state;
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    while (more) {
        qsf_test_expect_ok(qsf_forward_fill_experts(r.fwd, 3 * expert, &more, &err), &err);
        steps++;
    }
    assert_true(steps > 3);
    qsf_forward_stats(r.fwd, &s);
    assert_true(s.bytes_read >= (ALL - 1) * expert);
    prompt(&r, &err);
    QsfForwardStats after;
    qsf_forward_stats(r.fwd, &after);
    assert_true(after.bytes_read - s.bytes_read < 4 * expert);
    qsf_rig_close(&r);
    /* Without slots there is nothing to fill. */
    const QsfRigOptions all = { .path = path, .overrides = four };
    qsf_test_expect_ok(qsf_rig_open(&r, &all, &err), &err);
    qsf_test_expect_ok(qsf_forward_fill_experts(r.fwd, 3 * expert, &more, &err), &err);
    assert_false(more);
    qsf_rig_close(&r);
}

/* A pool that shrinks keeps the experts that were used most. */
static void shrinks_to_the_best(void **state) {
    const QsfRigOptions o = { .path = path, .overrides = four, .pin_cap = room_for(ALL - 1) };
    QsfErr err = { 0 };
    QsfRig r;
    (void)state;
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    prompt(&r, &err);
    for (unsigned i = 0; i < 80; i++) {
        qsf_forward_truncate(r.fwd, 0);
        token(&r, 3, NULL, &err);
    }
    set_slots(&r, USED * BLOCKS, &err);
    qsf_forward_truncate(r.fwd, 0);
    assert_true(read_for(&r, 3, &err) < expert);
    qsf_rig_close(&r);
}

/* An expert of a GGUF file is read in three pieces, or two if gate and up are in one tensor; if its matrices
 * follow one another, in one, with fewer bytes. */
static void reads_of_a_miss(void **state) {
    static const unsigned expected[] = {
        [QSF_TINY_STACKED] = 3, [QSF_TINY_FUSED] = 2, [QSF_TINY_SEPARATE] = 1
    };
    uint64_t bytes[3];
    (void)state;
    for (unsigned layout = 0; layout < 3; layout++) {
        char other[512];
        snprintf(other, sizeof other, "%s", qsf_test_tmp("layout.gguf"));
        assert_int_equal(qsf_test_write_tiny_experts_as(other, 5, (QsfTinyLayout)layout, false), 0);
        const QsfRigOptions o = {
            .path = other, .overrides = four, .pin_cap = room_for(5), .ahead = QSF_GUESSING_OFF
        };
        QsfForwardStats a, b;
        QsfErr err = { 0 };
        QsfRig r;
        qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
        assert_int_equal(r.plan.expert_slots, 5);
        qsf_test_expect_ok(qsf_forward_settle(r.fwd, NULL, NULL, &err), &err);
        qsf_forward_stats(r.fwd, &a);
        for (uint32_t i = 0; i < ANSWER; i++) token(&r, i, NULL, &err);
        qsf_forward_stats(r.fwd, &b);
        const uint64_t misses = b.expert_misses - a.expert_misses, reads = b.expert_reads - a.expert_reads;
        assert_true(misses > ANSWER);
        if (reads != misses * expected[layout])
            fail_msg("%llu reads of %llu experts, layout %u", (unsigned long long)reads,
                     (unsigned long long)misses, layout);
        bytes[layout] = (b.bytes_read - a.bytes_read) / misses;
        qsf_rig_close(&r);
        unlink(other);
    }
    assert_true(bytes[QSF_TINY_SEPARATE] < bytes[QSF_TINY_STACKED]);
    assert_true(bytes[QSF_TINY_SEPARATE] <= expert + 2 * QSF_WINDOW);
}

/* A read fails in the middle of a layer; the conversation continues when the disk works again. */
static void failed_read(void **state) {
    QsfErr err = { 0 };
    (void)state;
    for (uint32_t batch = 1; batch <= 16; batch *= 16) {
        const QsfRigOptions o = {
            .path = path, .overrides = four, .pin_cap = room_for(4), .batch = batch, .io = QSF_IO_PREAD
        };
        const int32_t more[4] = { 200, 100, 50, 25 };
        unsigned failures = 0;
        QsfRig r;
        qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
        qsf_test_expect_ok(qsf_forward_settle(r.fwd, NULL, NULL, &err), &err);
        for (uint32_t i = 0; i < r.plan.n_units; i++) {
            QsfUnit u;
            qsf_unit_at(&r.model, i, &u);
            if (!u.on_demand) continue;
            qsf_file_inject_fault(u.offset[u.n - 1] + 100, EIO);
            const int rc = qsf_forward_eval(r.fwd, more, 4, NULL, NULL, &err);
            qsf_file_inject_fault(UINT64_MAX, 0);
            failures += rc != QSF_OK;
            if (rc != QSF_OK) qsf_test_expect_err(&err, QSF_E_RUNTIME, "experts.gguf");
            qsf_err_clear(&err);
            qsf_forward_truncate(r.fwd, 0);
        }
        assert_true(failures > 0);
        prompt(&r, &err);
        token(&r, 0, NULL, &err);
        assert_memory_equal(qsf_forward_logits(r.fwd), expected(), VOCAB * sizeof(float));
        qsf_rig_close(&r);
        assert_int_equal(qsf_rig_leak(&r), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_logits),
        cmocka_unit_test(every_way_to_read),
        cmocka_unit_test(no_slots),
        cmocka_unit_test(levels),
        cmocka_unit_test(lent_memory),
        cmocka_unit_test(kept),
        cmocka_unit_test(filled_ahead),
        cmocka_unit_test(other_sizes),
        cmocka_unit_test(shrinks_to_the_best),
        cmocka_unit_test(reads_of_a_miss),
        cmocka_unit_test(failed_read),
    };
    return cmocka_run_group_tests(tests, write_model, clean);
}
