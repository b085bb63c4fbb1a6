/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Draft models: whatever they have guessed and whatever came instead, their logits are those of a forward
 * pass that evaluates the conversation from its start; for every kind of cache and state. */
#include <dirent.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/forward/draft_model.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { CTX = 160, PROMPT = 21, MOST = 6, N = 400 };

#define NEVER (-FLT_MAX) /* no guess ends a draft */

/* One of each kind of cache and recurrence; QSF_TEST_QUICK leaves out the other architectures. */
static const char *const quick[] = { "llama",  "gemma3", "deepseek2", "mamba",     "mamba2",       "rwkv6",
                                     "arwkv7", "lfm2",   "jamba",     "qwen3next", "granitehybrid" };

/* A rig of the same model, which gives the pool, and evaluates everything again. */
typedef struct Pair {
    QsfRig rig;
    QsfDraftModel *x;
    uint32_t n_vocab;
} Pair;

static bool open_pair_as(Pair *p, const char *path, uint32_t ctx, unsigned way) {
    QsfErr err = { 0 };
    const QsfRigOptions o = {
        .path = path, .threads = 2, .ctx = ctx, .k_type = "f16", .v_type = "f16", .level = QK_LEVEL_UNKNOWN
    };
    uint64_t rows[QSF_MEM_N] = { 0 }, planned = 0;
    if (qsf_rig_open(&p->rig, &o, &err) != QSF_OK) return false; /* not supported; other tests say so */
    const uint64_t before = qsf_rig_leak(&p->rig);
    const QsfPlanOptions po = { .threads = p->rig.plan.threads, .pin_cap = UINT64_MAX, .k = -1, .v = -1 };
    const QsfForwardOptions fo = {
        .table = &p->rig.table, .pool = p->rig.pool, .ledger = &p->rig.ledger, .cancel = &p->rig.cancel
    };
    qsf_test_expect_ok(qsf_draft_model_create(&p->x, path, &p->rig.ledger, &err), &err);
    qsf_test_expect_ok(qsf_draft_model_plan(p->x, &po, p->rig.plan.ctx, p->rig.plan.kv, way, rows, &err),
                       &err);
    qsf_test_expect_ok(qsf_draft_model_load(p->x, &fo, &err), &err);
    for (unsigned i = 0; i < QSF_MEM_N; i++) planned += rows[i];
    assert_in_range(qsf_rig_leak(&p->rig) - before, 1, planned);
    p->n_vocab = p->rig.model.hp.n_vocab;
    return true;
}

static bool open_pair(Pair *p, const char *path, uint32_t ctx) { return open_pair_as(p, path, ctx, 1); }

static void close_pair(Pair *p) {
    qsf_draft_model_destroy(p->x);
    qsf_rig_close(&p->rig);
    assert_int_equal(qsf_rig_leak(&p->rig), 0);
}

/* The logits after ids[0..n), of a forward pass that begins with ids[from]. */
static void expect_logits(Pair *p, const int32_t *ids, uint32_t from, uint32_t n, const char *name) {
    QsfErr err = { 0 };
    qsf_forward_truncate(p->rig.fwd, 0);
    qsf_test_expect_ok(qsf_forward_eval(p->rig.fwd, ids + from, n - from, NULL, NULL, &err), &err);
    qsf_test_expect_ok(qsf_draft_model_follow(p->x, ids, n, &err), &err);
    if (memcmp(qsf_forward_logits(p->rig.fwd), qsf_forward_logits(qsf_draft_model_forward(p->x)),
               p->n_vocab * sizeof(float)) != 0)
        fail_msg("%s: other logits after %u tokens", name, n);
}

static int32_t id_at(uint32_t i) { return (int32_t)((i * 7919u + 11) % 200); }

/* Of each draft, the conversation takes the first `right` guesses and then goes another way. */
static void taken_back(const char *path, const char *name) {
    int32_t ids[N], out[QSF_DRAFT_MODEL_TOKENS];
    uint32_t n = PROMPT;
    float margin;
    Pair p;
    if (!open_pair(&p, path, CTX)) return;
    for (uint32_t i = 0; i < n; i++) ids[i] = id_at(i);
    for (uint32_t right = 0; right <= MOST; right++) {
        assert_int_equal(qsf_draft_model_draft(p.x, ids, n, MOST, NEVER, out, &margin), MOST);
        memcpy(ids + n, out, right * sizeof *ids);
        n += right;
        ids[n] = right < MOST ? (out[right] + 1) % 200 : id_at(n);
        n++;
        expect_logits(&p, ids, 0, n, name);
    }
    /* A conversation that goes back, and one that is not evaluated further than it was. */
    qsf_draft_model_cut(p.x, PROMPT - 3);
    expect_logits(&p, ids, 0, n - 2, name);
    expect_logits(&p, ids, 0, n - 2, name);
    qsf_draft_model_cut(p.x, 0);
    ids[0] = 5;
    expect_logits(&p, ids, 0, 3, name);
    close_pair(&p);
}

static const char *tiny(int (*write)(const char *path)) {
    static char path[512];
    snprintf(path, sizeof path, "%s", qsf_test_tmp("draft_model.gguf"));
    assert_int_equal(write(path), 0);
    return path;
}

static int write_llama(const char *path) { return qsf_test_write_tiny_llama(path, NULL); }
static int write_mamba(const char *path) { return qsf_test_write_tiny_mamba(path, 3); }
static int write_experts(const char *path) { return qsf_test_write_tiny_experts(path, 5); }

static void test_tiny(void **state) {
    (void)state;
    taken_back(tiny(write_llama), "llama");
    taken_back(tiny(write_mamba), "mamba");
    taken_back(tiny(write_experts), "experts");
}

static void check_architecture(const char *name) {
    char path[160];
    snprintf(path, sizeof path, "architectures/%s/model.gguf", name);
    const char *at = qsf_test_data(path);
    if (at != NULL) taken_back(at, name);
}

static void test_architectures(void **state) {
    const char *dir = qsf_test_data("architectures");
    (void)state;
    if (dir == NULL) skip();
    if (qsf_test_quick()) {
        for (size_t i = 0; i < sizeof quick / sizeof *quick; i++) check_architecture(quick[i]);
        return;
    }
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.' && strchr(e->d_name, '.') == NULL) check_architecture(e->d_name);
    closedir(d);
}

/* A conversation longer than the context: the second half of it stays. */
static void test_long(void **state) {
    int32_t ids[N], out[QSF_DRAFT_MODEL_TOKENS];
    float margin;
    Pair p;
    (void)state;
    assert_true(open_pair(&p, tiny(write_mamba), 128));
    const uint32_t ctx = qsf_forward_ctx(qsf_draft_model_forward(p.x));
    assert_int_equal(ctx, 128);
    for (uint32_t i = 0; i < N; i++) ids[i] = id_at(i);
    for (uint32_t n = 1; n < N; n += 1 + n % 3) {
        assert_int_equal(qsf_draft_model_draft(p.x, ids, n, MOST, NEVER, out, &margin), MOST);
        assert_true(qsf_forward_n_past(qsf_draft_model_forward(p.x)) <= ctx);
    }
    qsf_draft_model_cut(p.x, 0);
    expect_logits(&p, ids, N - ctx / 2, N, "long");
    close_pair(&p);
}

/* Tokens that only one of the vocabularies has. */
static void test_vocab(void **state) {
    int32_t ids[PROMPT], out[QSF_DRAFT_MODEL_TOKENS];
    float margin;
    Pair p;
    (void)state;
    assert_true(open_pair(&p, tiny(write_llama), CTX));
    for (uint32_t i = 0; i < PROMPT; i++) ids[i] = i % 2 ? (int32_t)p.n_vocab + 7 : id_at(i);
    qsf_draft_model_set_vocab(p.x, 50);
    assert_int_equal(qsf_draft_model_draft(p.x, ids, PROMPT, MOST, NEVER, out, &margin), MOST);
    for (uint32_t i = 0; i < MOST; i++) assert_in_range(out[i], 0, 49);
    close_pair(&p);
}

/* Its head is found with a sketch: the likeliest tokens are the same. */
static void test_sketch(void **state) {
    static char path[512];
    const QsfTinySpec spec = { .hidden = 128, .vocab = 33000 };
    int32_t ids[PROMPT], out[2][QSF_DRAFT_MODEL_TOKENS];
    QsfForwardStats s;
    float margin[2];
    (void)state;
    snprintf(path, sizeof path, "%s", qsf_test_tmp("draft_model.gguf"));
    assert_int_equal(qsf_test_write_tiny_llama(path, &spec), 0);
    for (uint32_t i = 0; i < PROMPT; i++) ids[i] = id_at(i);
    for (unsigned way = 0; way < 2; way++) {
        Pair p;
        assert_true(open_pair_as(&p, path, CTX, way));
        for (uint32_t n = 3; n <= PROMPT; n += 3)
            assert_int_equal(qsf_draft_model_draft(p.x, ids, n, MOST, NEVER, out[way], &margin[way]), MOST);
        qsf_forward_stats(qsf_draft_model_forward(p.x), &s);
        assert_int_equal(s.head_sketched > 0, way == 0);
        close_pair(&p);
    }
    assert_memory_equal(out[0], out[1], MOST * sizeof *out[0]);
}

/* What is cancelled is evaluated by the next call. */
static void test_cancel(void **state) {
    int32_t ids[PROMPT], out[QSF_DRAFT_MODEL_TOKENS];
    QsfErr err = { 0 };
    float margin;
    Pair p;
    (void)state;
    assert_true(open_pair(&p, tiny(write_mamba), CTX));
    for (uint32_t i = 0; i < PROMPT; i++) ids[i] = id_at(i);
    atomic_store(&p.rig.cancel, 1);
    assert_int_equal(qsf_draft_model_follow(p.x, ids, PROMPT, &err), QSF_E_INTERRUPTED);
    assert_int_equal(qsf_draft_model_draft(p.x, ids, PROMPT, MOST, NEVER, out, &margin), 0);
    atomic_store(&p.rig.cancel, 0);
    expect_logits(&p, ids, 0, PROMPT, "cancelled");
    close_pair(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_tiny),   cmocka_unit_test(test_architectures),
                                        cmocka_unit_test(test_long),   cmocka_unit_test(test_vocab),
                                        cmocka_unit_test(test_sketch), cmocka_unit_test(test_cancel) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
