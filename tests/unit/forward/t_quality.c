/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a quality below 1 leaves out: the choice of layers and experts, passes that skip
 * layers, and the measures of layers. */
#include "tests/harness/qsf_test.h"

#include "src/plan/quality.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/rig.h"

enum { LAYERS = 8, PROMPT = 30, N = 50, VOCAB = 1000, HIDDEN = 64 };

static char path[512];
static int32_t ids[N];

static int write_model(void **state) {
    (void)state;
    snprintf(path, sizeof path, "%s", qsf_test_tmp("quality.gguf"));
    for (int i = 0; i < N; i++) ids[i] = (i * 7919 + 3) % VOCAB;
    return qsf_test_write_tiny_llama(path, &(QsfTinySpec){ .layers = LAYERS, .vocab = VOCAB });
}

static int remove_model(void **state) {
    (void)state;
    return unlink(path);
}

static void open_rig(QsfRig *r, const QsfRigOptions *o) {
    QsfErr err = { 0 };
    QsfRigOptions with = *o;
    with.path = path;
    qsf_test_expect_ok(qsf_rig_open(r, &with, &err), &err);
}

/* ---- the choice ---- */

static bool contains(const QsfBlockSet *a, const QsfBlockSet *b) {
    for (uint32_t i = 0; i < QSF_MAX_LAYERS; i++)
        if (qsf_blocks_have(b, i) && !qsf_blocks_have(a, i)) return false;
    return true;
}

static void check_monotone(const QsfModel *m, const double *score) {
    QsfBlockSet optional;
    QsfQuality last = { 0 }, q = { 0 };
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_optional_blocks(m, &optional, &err), &err);
    assert_int_equal(qsf_blocks_count(&optional), LAYERS - 2);
    assert_true(!qsf_blocks_have(&optional, 0) && !qsf_blocks_have(&optional, LAYERS - 1));
    qsf_quality_choose(&last, m, &optional, score, 1);
    assert_false(qsf_quality_reduces(&last));
    const uint64_t all = qsf_quality_bytes(&last, m);
    uint64_t before = all;
    for (int i = 99; i > 0; i--) {
        qsf_quality_choose(&q, m, &optional, score, (float)i / 100);
        assert_true(contains(&q.skip, &last.skip) && contains(&optional, &q.skip));
        assert_true(qsf_quality_bytes(&q, m) <= before);
        before = qsf_quality_bytes(&q, m);
        last = q;
    }
    assert_true(qsf_blocks_equal(&last.skip, &optional));
    /* about the part that was asked for: within half a layer */
    qsf_quality_choose(&q, m, &optional, score, 0.7f);
    const double share = (double)qsf_quality_bytes(&q, m) / (double)all;
    assert_true(share > 0.7 - 0.5 / LAYERS && share < 0.7 + 0.5 / LAYERS);
}

static void test_lower_skips_more(void **state) {
    static const double score[LAYERS] = { 9, 0.5, 0.1, 0.4, 0.2, 0.3, 0.1, 9 };
    (void)state;
    QsfRig r;
    open_rig(&r, &(QsfRigOptions){ 0 });
    check_monotone(&r.model, score);
    check_monotone(&r.model, NULL);
    QsfQuality q = { 0 };
    const QsfBlockSet *optional = qsf_forward_optional(r.fwd);
    qsf_quality_choose(&q, &r.model, optional, score, 0.7f);
    assert_true(qsf_blocks_have(&q.skip, 2) && qsf_blocks_have(&q.skip, 6)); /* the least important ones */
    assert_false(qsf_blocks_have(&q.skip, 1));
    qsf_quality_choose(&q, &r.model, optional, NULL, 0.85f);
    assert_true(qsf_blocks_have(&q.skip, 5)); /* not known: after the middle */
    qsf_rig_close(&r);
}

static void test_experts_are_rounded_up(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= 10; n++)
        for (uint32_t i = 1; i <= 10; i++) {
            const QsfQuality q = { .value = (float)i / 10 };
            assert_int_equal(qsf_quality_experts(&q, n), (n * i + 9) / 10);
        }
}

/* A layer whose cache another one reads is kept. */
static void test_shared_caches_are_kept(void **state) {
    (void)state;
    QsfRig r;
    open_rig(&r, &(QsfRigOptions){ 0 });
    QsfBlockSet optional;
    QsfErr err = { 0 };
    for (uint32_t i = 0; i < r.model.prog.n_steps; i++) {
        QsfStep *s = &r.model.prog.step[i];
        if (s->block == 4 && s->op == QSF_OP_ATTENTION) s->u.attention.kv = 2;
    }
    assert_int_equal(r.model.prog.kv[2].block, 2);
    qsf_test_expect_ok(qsf_optional_blocks(&r.model, &optional, &err), &err);
    assert_false(qsf_blocks_have(&optional, 2));
    assert_true(qsf_blocks_have(&optional, 3) && qsf_blocks_have(&optional, 4));
    qsf_rig_close(&r);
}

/* ---- passes ---- */

/* A tap that undoes what blocks have done. */
typedef struct Undo {
    const QsfRig *rig;
    QsfBlockSet skip;
    float before[N][HIDDEN];
} Undo;

static void undo(void *arg, const QsfTapData *t) {
    Undo *u = arg;
    uint32_t stride;
    const uint32_t block = u->rig->model.prog.step[t->step].block;
    if (t->x != NULL) return;
    float *x = qsf_forward_tapped(u->rig->fwd, (QsfSlice){ QSF_BUF_X, 0, HIDDEN }, &stride);
    for (uint32_t i = 0; i < t->n_cols; i++) {
        float *now = x + (size_t)i * stride, *before = u->before[t->pos + i];
        if (block > 0 && qsf_blocks_have(&u->skip, block - 1)) memcpy(now, before, HIDDEN * sizeof *now);
        if (qsf_blocks_have(&u->skip, block)) memcpy(before, now, HIDDEN * sizeof *now);
    }
}

static QsfQuality skipping(void) {
    QsfQuality q = { .value = 0.5f };
    qsf_blocks_add(&q.skip, 2);
    qsf_blocks_add(&q.skip, 4);
    qsf_blocks_add(&q.skip, 5);
    return q;
}

static void eval(QsfRig *r, bool reduced, uint32_t from, uint32_t to) {
    QsfErr err = { 0 };
    int rc = reduced ? qsf_forward_decode(r->fwd, ids + from, to - from, NULL, NULL, &err)
                     : qsf_forward_eval(r->fwd, ids + from, to - from, NULL, NULL, &err);
    qsf_test_expect_ok(rc, &err);
}

/* The same logits as when everything is computed and undone again. */
static void test_skipping_is_undoing(void **state) {
    static Undo u;
    (void)state;
    QsfRig a, b;
    open_rig(&a, &(QsfRigOptions){ 0 });
    open_rig(&b, &(QsfRigOptions){ .stream = true, .batch = 7 });
    const QsfQuality q = skipping();
    u = (Undo){ .rig = &a, .skip = q.skip };
    qsf_forward_tap(a.fwd, undo, &u);
    eval(&a, false, 0, N);
    qsf_forward_set_quality(b.fwd, &q);
    eval(&b, true, 0, PROMPT);
    for (uint32_t i = PROMPT; i < N; i++) eval(&b, true, i, i + 1);
    assert_memory_equal(qsf_forward_logits(a.fwd), qsf_forward_logits(b.fwd), VOCAB * sizeof(float));
    assert_int_equal(qsf_forward_exact(b.fwd), 0);
    qsf_rig_close(&a);
    qsf_rig_close(&b);
}

/* Returns the bytes that are read for tokens one by one. */
static uint64_t read_by(QsfRig *r, bool reduced, uint32_t from, uint32_t to) {
    QsfForwardStats before, after;
    qsf_forward_stats(r->fwd, &before);
    for (uint32_t i = from; i < to; i++) eval(r, reduced, i, i + 1);
    qsf_forward_stats(r->fwd, &after);
    return after.bytes_read - before.bytes_read;
}

/* Answers at a lower quality, with any plan; then everything again. */
static void answer(const QsfRigOptions *o, float *reduced, float *exact) {
    QsfRig r;
    open_rig(&r, o);
    const QsfQuality q = skipping();
    eval(&r, false, 0, PROMPT - 10);
    const uint64_t full = read_by(&r, false, PROMPT - 10, PROMPT);
    assert_int_equal(qsf_forward_exact(r.fwd), PROMPT);
    qsf_forward_set_quality(r.fwd, &q);
    eval(&r, true, PROMPT, N - 10);
    const uint64_t less = read_by(&r, true, N - 10, N);
    if (o->stream) assert_true(full > 0 && less < full * 8 / 10); /* 5 of 8 layers, and the head */
    memcpy(reduced, qsf_forward_logits(r.fwd), VOCAB * sizeof *reduced);
    assert_int_equal(qsf_forward_exact(r.fwd), PROMPT);
    assert_int_equal(qsf_forward_truncate(r.fwd, PROMPT), PROMPT);
    eval(&r, false, PROMPT, N);
    assert_int_equal(qsf_forward_exact(r.fwd), N);
    memcpy(exact, qsf_forward_logits(r.fwd), VOCAB * sizeof *exact);
    qsf_rig_close(&r);
}

static void test_any_plan_gives_the_same(void **state) {
    static float want[2][VOCAB], got[2][VOCAB], plain[VOCAB];
    static const QsfRigOptions plans[] = { { .threads = 3, .batch = 4 },
                                           { .stream = true },
                                           { .stream = true, .slot_bytes = 1, .n_slots = 1, .batch = 5 },
                                           { .pin_cap = 200000, .threads = 2 },
                                           { .pin_cap = 200000, .kv_step = 32 } };
    (void)state;
    answer(&(QsfRigOptions){ 0 }, want[0], want[1]);
    QsfRig r;
    open_rig(&r, &(QsfRigOptions){ 0 });
    eval(&r, false, 0, N);
    memcpy(plain, qsf_forward_logits(r.fwd), sizeof plain);
    qsf_rig_close(&r);
    assert_memory_equal(want[1], plain, sizeof plain);
    assert_memory_not_equal(want[0], plain, sizeof plain);
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        answer(&plans[i], got[0], got[1]);
        assert_memory_equal(got, want, sizeof want);
    }
}

/* Positions that a layer lacks are not used: it is skipped until they are removed, whatever is asked for. */
static void test_holes_are_not_used(void **state) {
    (void)state;
    QsfRig a, b;
    const QsfQuality q = skipping(), full = { .value = 1 };
    open_rig(&a, &(QsfRigOptions){ 0 });
    open_rig(&b, &(QsfRigOptions){ .stream = true });
    for (int i = 0; i < 2; i++) {
        QsfRig *r = i == 0 ? &a : &b;
        eval(r, false, 0, PROMPT);
        qsf_forward_set_quality(r->fwd, &q);
        eval(r, true, PROMPT, PROMPT + 8);
    }
    eval(&a, true, PROMPT + 8, N);
    qsf_forward_set_quality(b.fwd, &full);
    eval(&b, true, PROMPT + 8, PROMPT + 10);
    eval(&b, false, PROMPT + 10, N);
    assert_memory_equal(qsf_forward_logits(a.fwd), qsf_forward_logits(b.fwd), VOCAB * sizeof(float));
    assert_int_equal(qsf_forward_exact(b.fwd), PROMPT);
    qsf_forward_truncate(b.fwd, PROMPT + 3); /* some of them are left */
    eval(&b, false, PROMPT + 3, N);
    assert_memory_equal(qsf_forward_logits(a.fwd), qsf_forward_logits(b.fwd), VOCAB * sizeof(float));
    qsf_rig_close(&a);
    qsf_rig_close(&b);
}

/* A quality of 1 changes nothing. */
static void test_full_quality_is_exact(void **state) {
    (void)state;
    QsfRig a, b;
    open_rig(&a, &(QsfRigOptions){ 0 });
    open_rig(&b, &(QsfRigOptions){ 0 });
    QsfQuality q = skipping();
    q.value = 1;
    qsf_forward_set_quality(b.fwd, &q);
    for (uint32_t i = 0; i < N; i++) {
        eval(&a, false, i, i + 1);
        eval(&b, true, i, i + 1);
        assert_memory_equal(qsf_forward_logits(a.fwd), qsf_forward_logits(b.fwd), VOCAB * sizeof(float));
    }
    assert_int_equal(qsf_forward_exact(b.fwd), N);
    qsf_rig_close(&a);
    qsf_rig_close(&b);
}

/* ---- importance ---- */

static uint32_t measure(const QsfRigOptions *o, uint32_t step, double *score) {
    QsfRig r;
    open_rig(&r, o);
    memset(score, 0, LAYERS * sizeof *score);
    assert_int_equal(qsf_forward_importance(r.fwd, score), 0);
    for (uint32_t i = 0; i < N; i += step) eval(&r, false, i, i + step < N ? i + step : N);
    const uint32_t n = qsf_forward_importance(r.fwd, score);
    qsf_rig_close(&r);
    return n;
}

static void test_importance_is_the_same_for_all_chunks(void **state) {
    double want[LAYERS], got[LAYERS];
    (void)state;
    assert_int_equal(measure(&(QsfRigOptions){ 0 }, N, want), VOCAB / HIDDEN);
    for (uint32_t i = 1; i + 1 < LAYERS; i++) assert_true(want[i] > 0 && want[i] < 2);
    measure(&(QsfRigOptions){ .batch = 3, .threads = 3, .stream = true }, N, got);
    assert_memory_equal(got, want, sizeof want);
    measure(&(QsfRigOptions){ .batch = 16 }, 2, got);
    assert_memory_equal(got, want, sizeof want);
}

/* What was removed is measured again. */
static void test_importance_follows_truncation(void **state) {
    double first[LAYERS] = { 0 }, again[LAYERS] = { 0 };
    (void)state;
    QsfRig r;
    open_rig(&r, &(QsfRigOptions){ 0 });
    eval(&r, false, 0, PROMPT);
    qsf_forward_importance(r.fwd, first);
    qsf_forward_truncate(r.fwd, 5);
    assert_int_equal(qsf_forward_importance(r.fwd, again), 4);
    assert_memory_not_equal(first, again, sizeof first);
    eval(&r, false, 5, PROMPT);
    assert_int_equal(qsf_forward_importance(r.fwd, again), VOCAB / HIDDEN);
    assert_memory_equal(first, again, sizeof first);
    qsf_forward_truncate(r.fwd, 0);
    assert_int_equal(qsf_forward_importance(r.fwd, again), 0);
    qsf_rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lower_skips_more),
        cmocka_unit_test(test_experts_are_rounded_up),
        cmocka_unit_test(test_shared_caches_are_kept),
        cmocka_unit_test(test_skipping_is_undoing),
        cmocka_unit_test(test_any_plan_gives_the_same),
        cmocka_unit_test(test_holes_are_not_used),
        cmocka_unit_test(test_full_quality_is_exact),
        cmocka_unit_test(test_importance_is_the_same_for_all_chunks),
        cmocka_unit_test(test_importance_follows_truncation),
    };
    return cmocka_run_group_tests(tests, write_model, remove_model);
}
