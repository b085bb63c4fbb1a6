/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Drafts with some of the blocks: whatever they guess, the logits of the positions that follow are those
 * without drafts, for each kind of cache and state; and they read nothing that streams. */
#include <dirent.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/forward/forward_impl.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { CTX = 128, PROMPT = 21, MOST = 5, AFTER = 12, N = PROMPT + 2 * AFTER };

#define NEVER (-FLT_MAX) /* no guess ends a draft */

/* One of each kind of cache and recurrence; QSF_TEST_QUICK leaves out the other architectures. */
static const char *const quick[] = { "llama", "gemma3", "deepseek2", "mamba2", "rwkv6",
                                     "jamba", "lfm2",   "qwen3next", "gpt-oss" };

static int32_t id_at(uint32_t i) { return (int32_t)((i * 7919u + 11) % 200); }

/* The logits after each of the tokens after a prompt, one at a time; drafts before each of them: by `drafts`
 * tokens, 0 = none. */
static float *logits_of(QsfRig *r, uint32_t drafts, uint32_t *made) {
    const uint32_t n_vocab = r->model.hp.n_vocab;
    float *all = calloc((size_t)N * n_vocab, sizeof *all);
    int32_t ids[PROMPT], out[MOST];
    QsfErr err = { 0 };
    float margin;
    assert_non_null(all);
    for (uint32_t i = 0; i < PROMPT; i++) ids[i] = id_at(i);
    qsf_forward_truncate(r->fwd, 0);
    qsf_test_expect_ok(qsf_forward_eval(r->fwd, ids, PROMPT, NULL, NULL, &err), &err);
    for (uint32_t i = PROMPT; i < N; i++) {
        const int32_t id = id_at(i);
        if (drafts > 0) *made += qsf_forward_draft(r->fwd, id, 1 + i % drafts, NEVER, out, &margin);
        assert_int_equal(qsf_forward_n_past(r->fwd), i);
        qsf_test_expect_ok(qsf_forward_decode(r->fwd, &id, 1, NULL, NULL, &err), &err);
        memcpy(all + (size_t)i * n_vocab, qsf_forward_logits(r->fwd), n_vocab * sizeof *all);
    }
    return all;
}

/* Returns how many tokens were drafted. */
static uint32_t check(const char *path, const char *name, const QsfRigOptions *given) {
    QsfRigOptions o = *given;
    QsfErr err = { 0 };
    uint32_t made = 0;
    QsfRig r;
    o.path = path;
    o.ctx = CTX;
    o.hold = true;
    if (qsf_rig_open(&r, &o, &err) != QSF_OK) return 0; /* not supported; other tests say so */
    float *plain = logits_of(&r, 0, &made), *with = logits_of(&r, MOST, &made);
    if (memcmp(plain, with, (size_t)N * r.model.hp.n_vocab * sizeof *plain) != 0)
        fail_msg("%s: other logits after drafts", name);
    /* And after positions are taken back. */
    assert_true(qsf_forward_truncate(r.fwd, PROMPT) <= PROMPT);
    free(with);
    with = logits_of(&r, 0, &made);
    assert_memory_equal(plain, with, (size_t)N * r.model.hp.n_vocab * sizeof *plain);
    free(plain);
    free(with);
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
    return made;
}

static uint32_t check_architecture(const char *name) {
    const QsfRigOptions o = { .threads = 2, .level = QK_LEVEL_UNKNOWN };
    char path[160];
    snprintf(path, sizeof path, "architectures/%s/model.gguf", name);
    const char *at = qsf_test_data(path);
    return at != NULL ? check(at, name, &o) : 0;
}

static void test_architectures(void **state) {
    const char *dir = qsf_test_data("architectures");
    uint32_t made = 0;
    (void)state;
    if (dir == NULL) skip();
    if (qsf_test_quick()) {
        for (size_t i = 0; i < sizeof quick / sizeof *quick; i++) made += check_architecture(quick[i]);
    } else {
        DIR *d = opendir(dir);
        assert_non_null(d);
        for (const struct dirent *e; (e = readdir(d)) != NULL;)
            if (e->d_name[0] != '.' && strchr(e->d_name, '.') == NULL) made += check_architecture(e->d_name);
        closedir(d);
    }
    assert_true(made > 100);
}

static const char *deep_llama(void) {
    static char path[512];
    const QsfTinySpec spec = { .layers = 6, .hidden = 128, .ffn = 256 };
    snprintf(path, sizeof path, "%s", qsf_test_tmp("pinned.gguf"));
    assert_int_equal(qsf_test_write_tiny_llama(path, &spec), 0);
    return path;
}

/* Types of the cache, 2 bits among them; streamed, one thread and two. */
static void test_plans(void **state) {
    static const char *const types[] = { "f32", "q8", "q2" };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof types / sizeof *types; i++) {
        const QsfRigOptions o = { .threads = 1 + (int)(i % 2),
                                  .pin_cap = i < 3 ? 900000 : 0,
                                  .k_type = types[i % 3],
                                  .v_type = types[2 - i % 3],
                                  .level = QK_LEVEL_UNKNOWN };
        assert_true(check(deep_llama(), types[i % 3], &o) > 0);
    }
}

/* While other blocks stream, drafts read nothing of them, and neither drop nor use what was read ahead. */
static void test_reads(void **state) {
    const QsfRigOptions o = {
        .path = deep_llama(), .ctx = CTX, .hold = true, .pin_cap = 900000, .level = QK_LEVEL_UNKNOWN
    };
    QsfForwardStats before, after;
    int32_t ids[PROMPT], out[MOST];
    QsfErr err = { 0 };
    float margin;
    QsfRig r;
    (void)state;
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    assert_true(r.plan.n_slots > 0 && r.plan.streamed_bytes > 0);
    for (uint32_t i = 0; i < r.plan.n_units; i++)
        if (qsf_blocks_have(&r.plan.hold, r.model.prog.unit[i].block))
            assert_true(qsf_weights_pinned(r.fwd->weights, i));
    for (uint32_t i = 0; i < PROMPT; i++) ids[i] = id_at(i);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids, PROMPT, NULL, NULL, &err), &err);
    for (uint32_t i = 0; i < 20; i++) {
        qsf_forward_stats(r.fwd, &before);
        assert_int_equal(qsf_forward_draft(r.fwd, 5, MOST, NEVER, out, &margin), MOST);
        qsf_forward_stats(r.fwd, &after);
        assert_int_equal(after.wait_ns, before.wait_ns);
        assert_int_equal(after.passes, before.passes);
    }
    const uint64_t read = after.bytes_read;
    qsf_test_expect_ok(qsf_forward_decode(r.fwd, ids, 1, NULL, NULL, &err), &err);
    qsf_test_expect_ok(qsf_forward_decode(r.fwd, ids, 1, NULL, NULL, &err), &err);
    qsf_forward_stats(r.fwd, &after);
    assert_true(after.bytes_read - read <= 3 * r.plan.streamed_bytes);
    qsf_rig_close(&r);
}

/* Without blocks that are held there are no drafts, and cancelled ones end. */
static void test_none(void **state) {
    QsfRigOptions o = { .path = deep_llama(), .ctx = CTX, .level = QK_LEVEL_UNKNOWN };
    const int32_t id = 3;
    int32_t out[MOST];
    const char *why;
    QsfErr err = { 0 };
    float margin;
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        QsfRig r;
        o.hold = i == 1;
        qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
        assert_int_equal(qsf_forward_drafts(r.fwd, &why), o.hold);
        assert_int_equal(why == NULL, o.hold);
        assert_int_equal(qsf_forward_draft(r.fwd, id, MOST, NEVER, out, &margin),
                         0); /* nothing is evaluated */
        qsf_test_expect_ok(qsf_forward_decode(r.fwd, &id, 1, NULL, NULL, &err), &err);
        atomic_store(&r.cancel, 1);
        assert_int_equal(qsf_forward_draft(r.fwd, id, MOST, NEVER, out, &margin), 0);
        atomic_store(&r.cancel, 0);
        assert_int_equal(qsf_forward_draft(r.fwd, id, MOST, NEVER, out, &margin), o.hold ? MOST : 0);
        qsf_rig_close(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_architectures), cmocka_unit_test(test_plans),
                                        cmocka_unit_test(test_reads), cmocka_unit_test(test_none) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
