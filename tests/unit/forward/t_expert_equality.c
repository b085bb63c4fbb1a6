/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sparse models give the same tokens and logits, bit for bit, with every budget, number of threads and way to
 * read: when even the dense part streams, with a few slots for experts, with all but one, and with everything
 * in memory. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/plan/layout.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { PROMPT = 19, ANSWER = 6, VOCAB = 300, ALL = 2 * QSF_TINY_EXPERTS, BUDGETS = 10 };

static const char *const four[] = { "llama.expert_used_count=int:4", NULL };
static char path[512];

/* What a conversation says. */
typedef struct Answer {
    int32_t token[ANSWER];
    float logits[ANSWER][VOCAB];
} Answer;

static int32_t best(const float *logits) {
    int32_t at = 0;
    for (int32_t i = 1; i < VOCAB; i++)
        if (logits[i] > logits[at]) at = i;
    return at;
}

/* A prompt, and greedy tokens. Sets *pinned and *slots as planned. */
static void converse(const QsfRigOptions *o, Answer *a, uint64_t *pinned, uint32_t *slots) {
    int32_t ids[PROMPT];
    QsfErr err = { 0 };
    QsfRig r;
    for (uint32_t i = 0; i < PROMPT; i++) ids[i] = (int32_t)((i * 31u + i * i % 17u) % VOCAB);
    qsf_test_expect_ok(qsf_rig_open(&r, o, &err), &err);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids, PROMPT, NULL, NULL, &err), &err);
    for (uint32_t i = 0; i < ANSWER; i++) {
        memcpy(a->logits[i], qsf_forward_logits(r.fwd), sizeof a->logits[i]);
        a->token[i] = best(a->logits[i]);
        qsf_test_expect_ok(qsf_forward_decode(r.fwd, &a->token[i], 1, NULL, NULL, &err), &err);
    }
    *pinned = r.plan.pinned_bytes;
    *slots = r.plan.expert_slots;
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
}

/* Bytes that may stay in memory, ascending. */
static void find_budgets(uint64_t budget[BUDGETS]) {
    static const uint32_t slots[] = { 4, 5, 7, 11, ALL - 1 };
    const QsfRigOptions o = { .path = path, .overrides = four };
    QsfErr err = { 0 };
    QsfShape s;
    QsfRig r;
    uint32_t n = 0;
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    qsf_shape_make(&s, &r.model, &r.table);
    assert_int_equal(s.n_experts, ALL);
    const uint64_t dense = s.weight_bytes - s.expert_bytes;
    budget[n++] = 0;
    budget[n++] = dense / 3;
    budget[n++] = dense * 2 / 3;
    budget[n++] = dense;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        budget[n++] = dense + slots[i] * (s.expert_bytes / ALL);
    budget[n++] = UINT64_MAX;
    assert_int_equal(n, BUDGETS);
    qsf_rig_close(&r);
}

static void compare(const QsfRigOptions *o, const Answer *all, const char *what, uint64_t *pinned,
                    uint32_t *slots) {
    static Answer a;
    converse(o, &a, pinned, slots);
    if (memcmp(&a, all, sizeof a) != 0)
        fail_msg("other logits: %s, %llu bytes, %u slots, %d threads, I/O %d", what,
                 (unsigned long long)*pinned, *slots, o->threads, (int)o->io);
}

static void every_way(const char *what, Answer *all) {
    static const QsfIoKind io[] = { QSF_IO_URING, QSF_IO_PREAD, QSF_IO_MMAP };
    uint64_t budget[BUDGETS], pinned, before = 0;
    uint32_t slots, different = 0;
    find_budgets(budget);
    converse(&(QsfRigOptions){ .path = path, .overrides = four }, all, &pinned, &slots);
    for (uint32_t b = 0; b < BUDGETS; b++) {
        for (unsigned way = 0; way < 12; way++) {
            const QsfRigOptions o = { .path = path,
                                      .overrides = four,
                                      .stream = budget[b] == 0,
                                      .pin_cap = budget[b],
                                      .threads = 1 + (int)way / 3 % 2,
                                      .io = io[way % 3],
                                      .ahead = way < 6 ? QSF_GUESSING_ON : QSF_GUESSING_OFF };
            compare(&o, all, what, &pinned, &slots);
        }
        different += b == 0 || pinned > before;
        before = pinned;
    }
    assert_int_equal(different, BUDGETS);
}

static void all_layouts(void **state) {
    static const struct {
        const char *name;
        QsfTinyLayout layout;
        bool shared;
    } models[] = { { "stacked", QSF_TINY_STACKED, false },
                   { "stacked, shared expert", QSF_TINY_STACKED, true },
                   { "fused, shared expert", QSF_TINY_FUSED, true },
                   { "separate", QSF_TINY_SEPARATE, false } };
    static Answer first, a;
    (void)state;
    snprintf(path, sizeof path, "%s", qsf_test_tmp("equality.gguf"));
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        assert_int_equal(qsf_test_write_tiny_experts_as(path, 5, models[i].layout, models[i].shared), 0);
        every_way(models[i].name, &a);
        if (i == 0) first = a;
        if (models[i].layout == QSF_TINY_SEPARATE) assert_memory_equal(&a, &first, sizeof a);
    }
    unlink(path);
}

/* Limits change the answer, which is again the same with every budget. */
static void limits(void **state) {
    static const QsfExpertLimits some[] = { { 2, 0 }, { 0, 0.6f }, { 3, 0.3f } };
    static Answer all, limited;
    uint64_t budget[BUDGETS], pinned;
    uint32_t slots;
    (void)state;
    snprintf(path, sizeof path, "%s", qsf_test_tmp("limits.gguf"));
    assert_int_equal(qsf_test_write_tiny_experts_as(path, 5, QSF_TINY_STACKED, true), 0);
    find_budgets(budget);
    converse(&(QsfRigOptions){ .path = path, .overrides = four }, &all, &pinned, &slots);
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        QsfRigOptions o = { .path = path, .overrides = four, .limits = some[i] };
        converse(&o, &limited, &pinned, &slots);
        assert_memory_equal(limited.logits[0], all.logits[0], sizeof all.logits[0]); /* of the prompt */
        assert_memory_not_equal(limited.logits[1], all.logits[1], sizeof all.logits[1]);
        for (o.threads = 1; o.threads <= 2; o.threads++) {
            for (uint32_t b = 0; b < BUDGETS; b++) {
                o.stream = budget[b] == 0;
                o.pin_cap = budget[b];
                compare(&o, &limited, "limits", &pinned, &slots);
            }
        }
    }
    /* As many as the router chooses, and a part that every weight has: nothing is left out. */
    converse(&(QsfRigOptions){ .path = path, .overrides = four, .limits = { 4, 1e-9f } }, &limited, &pinned,
             &slots);
    assert_memory_equal(&limited, &all, sizeof all);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(all_layouts), cmocka_unit_test(limits) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
