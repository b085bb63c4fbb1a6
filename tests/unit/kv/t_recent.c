/* SPDX-License-Identifier: GPL-3.0-or-later */
/* KV caches of 2 bits, whose recent positions are read in 8: the same logits however a prompt is cut, for any
 * number of threads, after truncations, failed passes, evictions and changes of the plan. */
#include "src/forward/forward_impl.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { CTX = 320, N = 300, VOCAB = 300, PRECISE = 64 /* positions before which all are recent */ };

static const char *const pairs[][2] = { { "q2", "q2" }, { "q2", "f16" }, { "f32", "q2" }, { "q8", "q2" } };
enum { PAIRS = sizeof pairs / sizeof *pairs };

static const char *path;
static qk_level level = QK_LEVEL_UNKNOWN; /* the best, unless a test has the plain kernels too */

static int setup(void **state) {
    static char own[512];
    const QsfTinySpec spec = { .ctx = CTX, .layers = 4 };
    (void)state;
    snprintf(own, sizeof own, "%s", qsf_test_tmp("recent.gguf"));
    path = own;
    return qsf_test_write_tiny_llama(path, &spec);
}

static int teardown(void **state) {
    (void)state;
    return unlink(path);
}

static void open_as(QsfRig *r, const char *k, const char *v, int threads, uint32_t batch) {
    const QsfRigOptions o = {
        .path = path, .threads = threads, .batch = batch, .ctx = CTX, .k_type = k, .v_type = v, .level = level
    };
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_rig_open(r, &o, &err), &err);
    assert_string_equal(qk_kv_name(r->fwd->kv.types.k), k);
    assert_string_equal(qk_kv_name(r->fwd->kv.types.v), v);
}

static void open_two_bits(QsfRig *r) { open_as(r, "q2", "q2", 1, 64); }

static void close_rig(QsfRig *r) {
    qsf_rig_close(r);
    assert_int_equal(qsf_rig_leak(r), 0);
}

static const int32_t *ids_from(uint32_t from) {
    static int32_t ids[1000 + N];
    for (uint32_t i = 0; i < 1000 + N; i++) ids[i] = (int32_t)((i * 7919u + i / 13 + 1) % VOCAB);
    return ids + from;
}

static void eval(QsfRig *r, uint32_t from, uint32_t n) {
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_forward_eval(r->fwd, ids_from(from), n, NULL, NULL, &err), &err);
}

static void collect(void *arg, uint32_t pos, const float *logits) {
    memcpy((float *)arg + (size_t)pos * VOCAB, logits, VOCAB * sizeof *logits);
}

/* Logits of all positions (N, VOCAB), from passes over `step` positions. */
static float *all_logits(const char *k, const char *v, int threads, uint32_t batch, uint32_t step) {
    float *x = calloc((size_t)N * VOCAB, sizeof *x);
    QsfErr err = { 0 };
    QsfRig r;
    assert_non_null(x);
    open_as(&r, k, v, threads, batch);
    for (uint32_t at = 0; at < N; at += step) {
        const uint32_t n = N - at < step ? N - at : step;
        qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids_from(at), n, collect, x, &err), &err);
    }
    close_rig(&r);
    return x;
}

static void expect_logits(const QsfRig *r, const float *all) {
    assert_memory_equal(qsf_forward_logits(r->fwd), all + (size_t)(qsf_forward_n_past(r->fwd) - 1) * VOCAB,
                        VOCAB * sizeof *all);
}

/* ---- passes ---- */

static void test_cuts(void **state) {
    static const struct {
        int threads;
        uint32_t batch, step;
    } ways[] = { { 3, 64, N }, { 1, 7, N }, { 2, 512, 1 }, { 2, 16, 50 } };
    (void)state;
    for (unsigned i = 0; i <= PAIRS; i++) {
        const char *const *pair = pairs[i % PAIRS];
        level = i == PAIRS ? QK_LEVEL_REF : QK_LEVEL_UNKNOWN;
        float *want = all_logits(pair[0], pair[1], 1, 512, N);
        for (unsigned w = 0; w < sizeof ways / sizeof *ways; w++) {
            float *got = all_logits(pair[0], pair[1], ways[w].threads, ways[w].batch, ways[w].step);
            assert_memory_equal(got, want, (size_t)N * VOCAB * sizeof *got);
            free(got);
        }
        free(want);
    }
    level = QK_LEVEL_UNKNOWN;
}

/* While all positions are recent, nothing is read in 2 bits. */
static void test_precise(void **state) {
    (void)state;
    float *eight = all_logits("q8", "q8", 1, 64, N), *two = all_logits("q2", "q2", 1, 64, N);
    assert_memory_equal(two, eight, PRECISE * VOCAB * sizeof *two);
    assert_memory_not_equal(two + PRECISE * VOCAB, eight + PRECISE * VOCAB, VOCAB * sizeof *two);
    free(eight);
    free(two);
}

/* What the plan says is what is charged. */
static void test_memory(void **state) {
    (void)state;
    for (unsigned i = 0; i < PAIRS; i++) {
        QsfRig r;
        open_as(&r, pairs[i][0], pairs[i][1], 2, 64);
        assert_true(r.plan.checkpoints > 0 && r.plan.state_bytes > 0);
        assert_int_equal(r.ledger.used[QSF_MEM_KV], r.plan.rows[QSF_MEM_KV]);
        assert_int_equal(r.ledger.used[QSF_MEM_ACTIVATIONS], r.plan.rows[QSF_MEM_ACTIVATIONS]);
        close_rig(&r);
    }
}

static void test_cancelled(void **state) {
    (void)state;
    QsfErr err = { 0 };
    float *want = all_logits("q2", "q2", 1, 64, N);
    QsfRig r;
    open_two_bits(&r);
    eval(&r, 0, 130);
    atomic_store(&r.cancel, 1);
    assert_int_equal(qsf_forward_eval(r.fwd, ids_from(200), 60, NULL, NULL, &err), QSF_E_INTERRUPTED);
    atomic_store(&r.cancel, 0);
    eval(&r, 130, 50);
    expect_logits(&r, want);
    close_rig(&r);
    free(want);
}

/* Positions that wait after an early exit are evaluated later, as they would have been at once. */
static void test_exits(void **state) {
    (void)state;
    static const float margins[] = { 0, 0.05f, 1e30f };
    const QsfQuality all = { .value = 1 };
    float *want = all_logits("q2", "q2", 1, 64, N);
    for (unsigned m = 0; m < sizeof margins / sizeof *margins; m++) {
        QsfQuality q = { .value = 0.5f };
        QsfErr err = { 0 };
        QsfRig r;
        open_as(&r, "q2", "q2", 1, m == 1 ? 4 : 64);
        eval(&r, 0, 90);
        qsf_quality_exit(&q, &r.model, 2, margins[m], 0.5f);
        qsf_forward_set_quality(r.fwd, &q);
        for (uint32_t i = 90; i < 175; i++) {
            qsf_test_expect_ok(qsf_forward_decode(r.fwd, ids_from(i), 1, NULL, NULL, &err), &err);
            if (margins[m] > 1) expect_logits(&r, want);
        }
        assert_int_equal(qsf_forward_truncate(r.fwd, 172), 172);
        qsf_forward_set_quality(r.fwd, &all);
        eval(&r, 172, 50);
        expect_logits(&r, want);
        close_rig(&r);
    }
    free(want);
}

/* ---- truncation ---- */

static void test_truncate(void **state) {
    (void)state;
    float *want = all_logits("q2", "q2", 1, 64, N);
    QsfRig r;
    open_two_bits(&r);
    eval(&r, 0, 100);
    for (uint32_t i = 100; i < 200; i++) eval(&r, i, 1);
    assert_int_equal(qsf_forward_truncate(r.fwd, 193), 193); /* in the tile of the next position */
    eval(&r, 193, 1);
    eval(&r, 194, 1);
    expect_logits(&r, want);
    assert_int_equal(qsf_forward_keeps(r.fwd, 191), 100);  /* the end of the prompt */
    assert_int_equal(qsf_forward_truncate(r.fwd, 99), 99); /* in its tile */
    eval(&r, 99, 60);
    expect_logits(&r, want);
    eval(&r, 159, 1);
    expect_logits(&r, want);
    assert_int_equal(qsf_forward_truncate(r.fwd, 40), 0);
    eval(&r, 0, 150);
    expect_logits(&r, want);
    assert_int_equal(qsf_forward_truncate(r.fwd, 0), 0);
    eval(&r, 0, 50);
    expect_logits(&r, want);
    close_rig(&r);
    free(want);
}

/* ---- eviction ---- */

static void evicting(QsfRig *r, QsfEvictKind kind, uint32_t protect, int threads, uint32_t batch) {
    const QsfEvict e = { .kind = kind, .window = 128, .protect = protect };
    QsfErr err = { 0 };
    open_as(r, "q2", "q2", threads, batch);
    qsf_test_expect_ok(qsf_forward_evict(r->fwd, &e, &err), &err);
    eval(r, 0, 500);
    for (uint32_t i = 500; i < 700; i++) eval(r, i, 1);
}

static void test_evict(void **state) {
    (void)state;
    for (int kind = QSF_EVICT_SLIDING; kind < QSF_EVICT_N; kind++)
        for (uint32_t protect = 0; protect <= 20; protect += 20) {
            QsfRig a, b;
            evicting(&a, (QsfEvictKind)kind, protect, 1, 64);
            evicting(&b, (QsfEvictKind)kind, protect, 3, 7);
            assert_true(a.fwd->kv.lists.on);
            assert_memory_equal(qsf_forward_logits(a.fwd), qsf_forward_logits(b.fwd), VOCAB * sizeof(float));
            /* Not to before the last eviction, which is also where policies that observe know the weights. */
            const uint32_t last = a.fwd->kv.lists.evicted_at, to = last > 697 ? last : 697;
            assert_true(last > 500 && last < 700);
            const uint32_t kept = qsf_forward_truncate(a.fwd, to);
            assert_true(kept == to || (kept == last && qsf_evict_observes((QsfEvictKind)kind)));
            for (uint32_t i = kept; i < 700; i++) eval(&a, i, 1);
            assert_memory_equal(qsf_forward_logits(a.fwd), qsf_forward_logits(b.fwd), VOCAB * sizeof(float));
            close_rig(&a);
            close_rig(&b);
        }
}

/* ---- plans ---- */

static void replan(QsfRig *r, const char *k, const char *v, uint32_t ctx) {
    const QsfPlanOptions o = { .budget = 4ull << 30,
                               .ctx = ctx,
                               .k = (int)qsf_kv_type_parse(k),
                               .v = (int)qsf_kv_type_parse(v),
                               .pin_cap = UINT64_MAX,
                               .batch = 64,
                               .threads = 1 };
    QsfErr err = { 0 };
    QsfPlan p;
    qsf_test_expect_ok(qsf_plan_make(&p, &r->model, &o, &err), &err);
    qsf_test_expect_ok(qsf_forward_replan(r->fwd, &p, r->pool, &err), &err);
    assert_int_equal(r->ledger.used[QSF_MEM_KV], p.rows[QSF_MEM_KV]);
    assert_null(r->fwd->kv.carried);
    qsf_plan_free(&p);
}

/* Another context changes nothing. */
static void test_contexts(void **state) {
    (void)state;
    float *want = all_logits("q2", "q2", 1, 64, N);
    QsfRig r;
    open_two_bits(&r);
    eval(&r, 0, 120);
    replan(&r, "q2", "q2", 200);
    eval(&r, 120, 17);
    expect_logits(&r, want);
    replan(&r, "q2", "q2", CTX);
    assert_int_equal(qsf_forward_truncate(r.fwd, 121), 120);
    eval(&r, 120, 100);
    expect_logits(&r, want);
    close_rig(&r);
    free(want);
}

/* q8 becomes q2 and q8 again: recent positions are as they were. */
static void test_converted(void **state) {
    (void)state;
    float *want = all_logits("q8", "q8", 1, 64, N);
    QsfRig r;
    open_as(&r, "q8", "q8", 1, 64);
    eval(&r, 0, 45);
    replan(&r, "q2", "q2", CTX);
    eval(&r, 45, 1);
    expect_logits(&r, want);
    replan(&r, "f32", "q2", CTX);
    replan(&r, "q2", "q2", 250);
    replan(&r, "q8", "q8", CTX);
    eval(&r, 46, 2);
    assert_int_equal(qsf_forward_n_past(r.fwd), 48);
    assert_true(r.fwd->kv.converted);
    close_rig(&r);
    open_as(&r, "q8", "q8", 1, 64);
    eval(&r, 0, 46);
    replan(&r, "q2", "q2", CTX);
    replan(&r, "q8", "q8", CTX);
    eval(&r, 46, 100);
    expect_logits(&r, want);
    close_rig(&r);
    free(want);
}

/* Conversions in the middle, in another order, with positions evicted or not: the same
 * whatever the passes. */
static void test_converted_far(void **state) {
    (void)state;
    for (int evict = 0; evict < 2; evict++) {
        float got[2][VOCAB];
        for (uint32_t way = 0; way < 2; way++) {
            const QsfEvict e = { .kind = evict ? QSF_EVICT_SLIDING : QSF_EVICT_NONE,
                                 .window = 128,
                                 .protect = 4 };
            QsfErr err = { 0 };
            QsfRig r;
            uint32_t at = 0;
            open_as(&r, "f16", "f16", 1, way ? 7 : 64);
            qsf_test_expect_ok(qsf_forward_evict(r.fwd, &e, &err), &err);
            for (unsigned i = 0; i < PAIRS; i++) {
                const QsfPlanOptions o = { .budget = 4ull << 30,
                                           .ctx = CTX,
                                           .k = (int)qsf_kv_type_parse(pairs[i][0]),
                                           .v = (int)qsf_kv_type_parse(pairs[i][1]),
                                           .pin_cap = UINT64_MAX,
                                           .batch = way ? 7 : 64,
                                           .kv_lists = evict,
                                           .threads = 1 };
                QsfPlan p;
                for (uint32_t n = 0; n < 70; n += way ? 1 : 70, at += way ? 1 : 70)
                    eval(&r, at, way ? 1 : 70);
                qsf_test_expect_ok(qsf_plan_make(&p, &r.model, &o, &err), &err);
                qsf_test_expect_ok(qsf_forward_replan(r.fwd, &p, r.pool, &err), &err);
                qsf_plan_free(&p);
            }
            eval(&r, at, 20);
            memcpy(got[way], qsf_forward_logits(r.fwd), sizeof got[way]);
            close_rig(&r);
        }
        assert_memory_equal(got[0], got[1], sizeof got[0]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts),      cmocka_unit_test(test_precise),
        cmocka_unit_test(test_memory),    cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_exits),     cmocka_unit_test(test_truncate),
        cmocka_unit_test(test_evict),     cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_converted), cmocka_unit_test(test_converted_far),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
