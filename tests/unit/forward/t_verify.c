/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Passes whose last positions are taken back: the logits are those of single tokens, and so are all later
 * ones, at whatever position the pass ends, for each kind of cache and state. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/forward/forward_impl.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { CTX = 128, PROMPT = 21, COLS = QSF_DRAFT_COLS, AFTER = 3, MOST = PROMPT + COLS * COLS + COLS * AFTER };

/* Attention of every kind, and every recurrence; QSF_TEST_QUICK leaves out the other architectures. */
static const char *const quick[] = { "llama", "gemma3", "gpt-oss", "deepseek2",   "deepseek32", "minimax-m3",
                                     "mamba", "mamba2", "rwkv6",   "arwkv7",      "rwkv6qwen2", "qwen3next",
                                     "lfm2",  "jamba",  "plamo2",  "kimi-linear", "minimax-01" };

/* The right tokens, whatever the model thinks of them. */
static int32_t id_at(uint32_t pos) { return (int32_t)((pos * 7919u + 11) % 200); }

static void fill(int32_t *ids, uint32_t from, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) ids[i] = id_at(from + i);
}

typedef struct Check {
    const float *want; /* (n_vocab) of position `from` and those after it */
    uint32_t from, n_vocab, stay, seen;
    bool same;
} Check;

static void compare(Check *c, uint32_t pos, const float *logits) {
    const float *want = c->want + (size_t)pos * c->n_vocab;
    if (memcmp(want, logits, c->n_vocab * sizeof *want) != 0) c->same = false;
}

static bool on_logits(void *arg, uint32_t pos, const float *logits) {
    Check *c = arg;
    assert_int_equal(pos, c->from + c->seen);
    compare(c, pos, logits);
    return ++c->seen < c->stay;
}

/* The logits after each token, one at a time. */
static float *singles(QsfRig *r, uint32_t n) {
    const uint32_t n_vocab = r->model.hp.n_vocab;
    float *all = calloc((size_t)n * n_vocab, sizeof *all);
    QsfErr err = { 0 };
    assert_non_null(all);
    for (uint32_t i = 0; i < n; i++) {
        const int32_t id = id_at(i);
        qsf_test_expect_ok(qsf_forward_decode(r->fwd, &id, 1, NULL, NULL, &err), &err);
        memcpy(all + (size_t)i * n_vocab, qsf_forward_logits(r->fwd), n_vocab * sizeof *all);
    }
    qsf_forward_truncate(r->fwd, 0);
    return all;
}

/* A pass of which `stay` positions are right and stay, and then single tokens. */
static bool take_back(QsfRig *r, const float *want, uint32_t stay) {
    QsfErr err = { 0 };
    int32_t ids[COLS];
    const uint32_t past = qsf_forward_n_past(r->fwd), most = qsf_forward_verifiable(r->fwd, NULL);
    const uint32_t n = most < COLS ? most : COLS;
    Check c = { want, past, r->model.hp.n_vocab, stay < n ? stay : n, 0, true };
    if (n < 2) return false;
    fill(ids, past, n);
    for (uint32_t i = c.stay; i < n; i++) ids[i] = (ids[i] + 77) % 200;
    qsf_test_expect_ok(qsf_forward_verify(r->fwd, ids, n, on_logits, &c, &err), &err);
    assert_int_equal(c.seen, c.stay);
    assert_int_equal(qsf_forward_n_past(r->fwd), past + c.stay);
    compare(&c, past + c.stay - 1, qsf_forward_logits(r->fwd));
    for (uint32_t i = 0; i < AFTER; i++) {
        const uint32_t pos = past + c.stay + i;
        fill(ids, pos, 1);
        qsf_test_expect_ok(qsf_forward_decode(r->fwd, ids, 1, NULL, NULL, &err), &err);
        compare(&c, pos, qsf_forward_logits(r->fwd));
    }
    return c.same;
}

static void check(const char *name, const QsfRigOptions *given) {
    char path[160];
    QsfRigOptions o = *given;
    QsfErr err = { 0 };
    QsfRig r;
    int32_t ids[PROMPT];
    snprintf(path, sizeof path, "architectures/%s/model.gguf", name);
    o.path = qsf_test_data(path);
    o.ctx = CTX;
    if (o.path == NULL) skip();
    if (qsf_rig_open(&r, &o, &err) != QSF_OK) return; /* not supported; other tests say so */
    assert_int_equal(r.plan.draft_cols, COLS);
    float *want = singles(&r, MOST);
    fill(ids, 0, PROMPT);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids, PROMPT, NULL, NULL, &err), &err);
    for (uint32_t stay = 1; stay <= COLS; stay++)
        if (!take_back(&r, want, stay)) fail_msg("%s: a pass of which %u positions stay", name, stay);
    free(want);
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
}

static void test_architectures(void **state) {
    const QsfRigOptions o = { .threads = 2, .level = QK_LEVEL_UNKNOWN };
    const char *dir = qsf_test_data("architectures");
    (void)state;
    if (dir == NULL) skip();
    if (qsf_test_quick()) {
        for (size_t i = 0; i < sizeof quick / sizeof *quick; i++) check(quick[i], &o);
        return;
    }
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.' && strchr(e->d_name, '.') == NULL) check(e->d_name, &o);
    closedir(d);
}

/* Streaming, one thread, and the types of the cache. */
static void test_plans(void **state) {
    static const char *const types[] = { "f32", "q8", "q6", "q4" };
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const QsfRigOptions o = { .threads = 1,
                                  .stream = i % 2 == 0,
                                  .k_type = types[i],
                                  .v_type = types[3 - i],
                                  .level = QK_LEVEL_UNKNOWN };
        check("llama", &o);
        check("qwen3next", &o);
    }
}

/* Of a Mamba model: what convolutions read, steps and B, but not what the convolutions compute again. */
static void test_kept(void **state) {
    const char *path = qsf_test_tmp("verify_mamba.gguf");
    const QsfRigOptions o = { .path = path, .ctx = CTX, .level = QK_LEVEL_UNKNOWN };
    enum { BLOCKS = 2, INNER = 128, STATE = 16 };
    QsfErr err = { 0 };
    QsfRig r;
    (void)state;
    assert_int_equal(qsf_test_write_tiny_mamba(path, 3), 0);
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    assert_int_equal(r.fwd->l.kept_floats, BLOCKS * (2 * INNER + STATE));
    qsf_rig_close(&r);
}

static bool all_stay(void *arg, uint32_t pos, const float *logits) {
    (void)arg, (void)pos, (void)logits;
    return true;
}

/* What the first position of a pass with drafts chose is learned, as if it were alone. */
static void test_uses(void **state) {
    const char *path = qsf_test_tmp("verify_experts.gguf");
    uint32_t *uses[2], n = 0, sum = 0;
    (void)state;
    assert_int_equal(qsf_test_write_tiny_experts(path, 5), 0);
    for (unsigned way = 0; way < 2; way++) {
        const QsfRigOptions o = { .path = path, .ctx = CTX, .pin_cap = 200000, .level = QK_LEVEL_UNKNOWN };
        const int32_t ids[3] = { 11, 12, 13 };
        QsfErr err = { 0 };
        QsfRig r;
        qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
        n = r.plan.n_experts;
        uses[way] = calloc(n, sizeof **uses);
        assert_non_null(uses[way]);
        if (way == 0)
            qsf_test_expect_ok(qsf_forward_decode(r.fwd, ids, 1, NULL, NULL, &err), &err);
        else
            qsf_test_expect_ok(qsf_forward_verify(r.fwd, ids, 3, all_stay, NULL, &err), &err);
        assert_int_equal(qsf_forward_take_uses(r.fwd, uses[way], n), 1);
        qsf_rig_close(&r);
    }
    for (uint32_t i = 0; i < n; i++) sum += uses[0][i];
    assert_int_equal(sum, 4); /* two of each of two blocks */
    assert_memory_equal(uses[0], uses[1], n * sizeof **uses);
    free(uses[0]);
    free(uses[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_architectures), cmocka_unit_test(test_plans),
                                        cmocka_unit_test(test_uses), cmocka_unit_test(test_kept) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
