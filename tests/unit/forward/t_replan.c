/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plan changes between two tokens: the same logits, bit for bit, as without them; memory is really freed;
 * after a plan that fails, or a cancelled answer, a conversation continues under another plan. */
#include <pthread.h>

#include "src/base/clock.h"
#include "src/base/file.h"
#include "src/plan/layout.h"
#include "src/plan/units.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/rig.h"

enum { N_TOKENS = 90, MAX_UNITS = 64 };

static char path[512];

static void write_model(const QsfTinySpec *spec) {
    snprintf(path, sizeof path, "%s", qsf_test_tmp("replan.gguf"));
    assert_int_equal(qsf_test_write_tiny_llama(path, spec), 0);
}

static int clean(void **state) {
    (void)state;
    qsf_file_inject_fault(UINT64_MAX, 0);
    qsf_mem_inject_failure(0);
    if (*path != '\0') unlink(path);
    *path = '\0';
    return 0;
}

static uint32_t next_random(uint32_t *state) { return (*state = *state * 1664525u + 1013904223u) >> 8; }

static const int32_t *ids_below(uint32_t n_vocab) {
    static int32_t ids[N_TOKENS];
    for (uint32_t i = 0; i < N_TOKENS; i++)
        ids[i] = (int32_t)((i % 13 * i * 7919u + 1) % n_vocab); /* some again */
    return ids;
}

static void collect(void *arg, uint32_t pos, const float *logits) {
    memcpy((float *)arg + (size_t)pos * 300, logits, 300 * sizeof *logits);
}

/* (N_TOKENS, 300) */
static float *undisturbed(const QsfRigOptions *o) {
    QsfRig r;
    QsfErr err = { 0 };
    float *x = calloc(N_TOKENS * 300, sizeof *x);
    assert_non_null(x);
    qsf_test_expect_ok(qsf_rig_open(&r, o, &err), &err);
    assert_int_equal(r.model.hp.n_vocab, 300);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids_below(300), N_TOKENS, collect, x, &err), &err);
    qsf_rig_close(&r);
    return x;
}

/* The part of a plan that the forward pass uses. */
typedef struct Way {
    unsigned pinned; /* percentage of each unit's items */
    uint32_t n_slots, slot_factor, batch, ctx;
    int threads;
    bool table;    /* resident embedding */
    uint32_t rows; /* otherwise: of its row cache */
    QsfStreamConfig stream;
} Way;

static unsigned wide; /* 1: K as f32, 2: V as f32, 3: both; 0: as the rig has them */

static void plan_units(const QsfModel *m, const Way *w, QsfPlan *p) {
    p->streamed_bytes = p->pinned_bytes = 0;
    for (uint32_t i = 0; i < p->n_units; i++) {
        QsfUnit u;
        qsf_unit_at(m, i, &u);
        uint32_t n = u.items * w->pinned / 100;
        p->pinned_items[i] = n >= u.items ? u.items : n / QSF_ROW_QUANTUM * QSF_ROW_QUANTUM;
        uint64_t held = qsf_unit_item_bytes(&u, 0, p->pinned_items[i]);
        p->pinned_bytes += held;
        p->streamed_bytes += u.bytes - held;
    }
}

/* items: memory for the plan's array. */
static QsfPlan plan_of(const QsfRig *r, const Way *w, uint32_t *items) {
    QsfPlan p = r->plan;
    QsfShape s;
    assert_true(p.n_units <= MAX_UNITS);
    qsf_shape_make(&s, &r->model, &r->table);
    p.pinned_items = items;
    plan_units(&r->model, w, &p);
    p.n_slots = p.streamed_bytes > 0 ? w->n_slots : 0;
    p.slot_bytes = p.n_slots > 0 ? s.min_slot * w->slot_factor : 0;
    p.batch = w->batch;
    p.ctx = w->ctx;
    p.threads = w->threads;
    p.embed_resident = w->table;
    p.embed_rows = w->rows;
    p.stream = w->stream;
    if (wide & 1) p.kv.k = QK_KV_F32;
    if (wide & 2) p.kv.v = QK_KV_F32;
    return p;
}

/* Creates the pool for the plan, then applies the plan; the old pool is destroyed in any case. */
static int replan(QsfRig *r, const Way *w, QsfErr *err) {
    uint32_t items[MAX_UNITS];
    QsfPlan p = plan_of(r, w, items);
    QsfPool *pool;
    QsfErr none = { 0 };
    qsf_mem_inject_failure(0);
    qsf_test_expect_ok(qsf_pool_create(&pool, w->threads, &r->ledger, &none), &none);
    int rc = qsf_forward_replan(r->fwd, &p, pool, err);
    qsf_pool_destroy(r->pool);
    r->pool = pool;
    return rc;
}

static const Way whole = {
    100, 0, 1, 16, 128, 1, true, 0, { .kind = QSF_IO_AUTO, .direct = QSF_DIRECT_AUTO }
};

static Way random_way(uint32_t *seed, uint32_t past) {
    static const unsigned pinned[] = { 0, 30, 50, 77, 100, 100 };
    static const uint32_t batch[] = { 1, 3, 16, 64 }, rows[] = { 0, 1, 5, 40 };
    return (Way){ .pinned = pinned[next_random(seed) % 6],
                  .n_slots = 1 + next_random(seed) % 4,
                  .slot_factor = 1 + next_random(seed) % 3,
                  .batch = batch[next_random(seed) % 4],
                  .ctx = N_TOKENS + next_random(seed) % (past % 2 == 0 ? 40 : 2000),
                  .threads = 1 + (int)(next_random(seed) % 3),
                  .table = next_random(seed) % 3 == 0,
                  .rows = rows[next_random(seed) % 4],
                  .stream = { .kind = (QsfIoKind)(next_random(seed) % QSF_IO_N),
                              .direct = (QsfIoDirect)(next_random(seed) % QSF_DIRECT_N) } };
}

static void check_logits(const QsfRig *r, const float *want) {
    uint32_t past = qsf_forward_n_past(r->fwd);
    if (past == 0) return;
    assert_memory_equal(qsf_forward_logits(r->fwd), want + (past - 1) * 300, 300 * sizeof *want);
}

static void run_through_plans(const QsfRigOptions *o, const float *want, uint32_t seed) {
    QsfRig r;
    QsfErr err = { 0 };
    const int32_t *ids = ids_below(300);
    qsf_test_expect_ok(qsf_rig_open(&r, o, &err), &err);
    for (uint32_t past = 0, n; past < N_TOKENS; past += n) {
        n = next_random(&seed) % 3 == 0 ? 1 + next_random(&seed) % 20 : 1;
        if (n > N_TOKENS - past) n = N_TOKENS - past;
        /* f32 holds every f16: the way back gives the same bits. Positions are stored as f16. */
        for (uint32_t times = next_random(&seed) % 4; times > 0; times--) {
            Way w = random_way(&seed, past);
            wide = times > 1 ? next_random(&seed) % 4 : 0;
            qsf_test_expect_ok(replan(&r, &w, &err), &err);
            assert_int_equal(qsf_forward_ctx(r.fwd), w.ctx);
            check_logits(&r, want);
        }
        if (next_random(&seed) % 4 == 0)
            qsf_test_expect_ok(qsf_forward_settle(r.fwd, NULL, NULL, &err), &err);
        qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids + past, n, NULL, NULL, &err), &err);
        assert_int_equal(qsf_forward_n_past(r.fwd), past + n);
        check_logits(&r, want);
    }
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
}

static void test_same_logits(void **state) {
    (void)state;
    static const QsfTinySpec specs[] = {
        { .wtype = 2, .layers = 3, .tied = true },
        { .wtype = 8, .biases = true, .ctx = 4096 },
        { .wtype = 0, .hidden = 72, .heads = 6, .kv_heads = 3, .head_dim = 12, .ffn = 100 }
    };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        write_model(&specs[i]);
        const QsfRigOptions o = { .path = path, .ctx = 128, .level = QK_LEVEL_UNKNOWN, .exact = i == 2 };
        float *want = undisturbed(&o);
        for (uint32_t seed = 1; seed <= 6; seed++) run_through_plans(&o, want, seed * 91 + (uint32_t)i);
        free(want);
        clean(NULL);
    }
}

/* Fewer bits in the middle of a conversation: it continues, close to what it was, without an evaluation of
 * what was there. */
static void test_fewer_bits(void **state) {
    (void)state;
    QsfRig r;
    QsfErr err = { 0 };
    uint32_t items[MAX_UNITS];
    QsfForwardStats before, after;
    write_model(NULL);
    const QsfRigOptions o = { .path = path, .ctx = 128, .level = QK_LEVEL_UNKNOWN };
    float *want = undisturbed(&o);
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids_below(300), 60, NULL, NULL, &err), &err);
    qsf_forward_stats(r.fwd, &before);
    const uint64_t charged = r.ledger.used[QSF_MEM_KV];
    QsfPlan p = plan_of(&r, &whole, items);
    p.kv = (QsfKvTypes){ QK_KV_Q8, QK_KV_Q8 };
    qsf_test_expect_ok(qsf_forward_replan(r.fwd, &p, r.pool, &err), &err);
    assert_true(r.ledger.used[QSF_MEM_KV] < charged);
    assert_int_equal(qsf_forward_n_past(r.fwd), 60);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids_below(300) + 60, 1, NULL, NULL, &err), &err);
    qsf_forward_stats(r.fwd, &after);
    assert_int_equal(after.prefill_tokens, before.prefill_tokens);
    assert_true(after.converted && !before.converted);
    double far = 0, size = 0;
    for (size_t i = 0; i < 300; i++) {
        const double x = (double)want[60 * 300 + i], d = (double)qsf_forward_logits(r.fwd)[i] - x;
        far += d * d;
        size += x * x;
    }
    assert_true(far > 0 && far < 1e-3 * size);
    qsf_forward_truncate(r.fwd, 0);
    qsf_forward_stats(r.fwd, &after);
    assert_false(after.converted);
    qsf_rig_close(&r);
    free(want);
}

static void test_bad_plans(void **state) {
    (void)state;
    QsfRig r;
    QsfErr err = { 0 };
    Way w = whole;
    uint32_t items[MAX_UNITS];
    write_model(NULL);
    const QsfRigOptions o = { .path = path, .ctx = 128, .level = QK_LEVEL_UNKNOWN };
    float *want = undisturbed(&o);
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids_below(300), 50, NULL, NULL, &err), &err);
    w.ctx = 49;
    assert_int_equal(replan(&r, &w, &err), QSF_E_CONTEXT);
    qsf_test_expect_err(&err, QSF_E_CONTEXT, "50 are in use");
    qsf_err_clear(&err);
    w.ctx = 50;
    QsfPlan p = plan_of(&r, &w, items);
    p.exact = true;
    assert_int_equal(qsf_forward_replan(r.fwd, &p, r.pool, NULL), QSF_E_RUNTIME);
    qsf_test_expect_ok(replan(&r, &w, &err), &err);
    check_logits(&r, want);
    assert_int_equal(qsf_forward_eval(r.fwd, ids_below(300), 1, NULL, NULL, NULL), QSF_E_CONTEXT);
    w.ctx = 90;
    qsf_test_expect_ok(replan(&r, &w, &err), &err);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids_below(300) + 50, 40, NULL, NULL, &err), &err);
    check_logits(&r, want);
    qsf_rig_close(&r);
    free(want);
}

/* --- memory --- */

static void settle_at(QsfRig *r, const Way *w, uint32_t token) {
    QsfErr err = { 0 };
    qsf_test_expect_ok(replan(r, w, &err), &err);
    qsf_test_expect_ok(qsf_forward_settle(r->fwd, NULL, NULL, &err), &err);
    qsf_test_expect_ok(qsf_forward_eval(r->fwd, ids_below(300) + token, 1, NULL, NULL, &err), &err);
}

/* Bytes charged and bytes resident both drop by what the new plan does not hold, repeatedly. */
static void test_memory_returns(void **state) {
    (void)state;
    QsfRig r;
    QsfErr err = { 0 };
    const char *san = getenv("QSF_SAN");
    if (san != NULL && strcmp(san, "yes") == 0) skip();
    const Way big = { 100, 0, 1, 64, 4096, 2, true, 0, { .kind = QSF_IO_AUTO, .direct = QSF_DIRECT_AUTO } };
    const Way small = { 0, 1, 1, 1, 128, 1, false, 0, { .kind = QSF_IO_AUTO, .direct = QSF_DIRECT_AUTO } };
    write_model(&(QsfTinySpec){ .wtype = 0, .hidden = 256, .ffn = 1024, .layers = 6, .ctx = 4096 });
    const QsfRigOptions o = { .path = path, .ctx = 4096, .threads = 2, .level = QK_LEVEL_UNKNOWN };
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    uint64_t weights = r.plan.weight_bytes;
    for (uint32_t round = 0; round < 4; round++) {
        settle_at(&r, &big, 2 * round);
        uint64_t rss0 = qsf_rss_bytes(), used0 = qsf_rig_leak(&r);
        settle_at(&r, &small, 2 * round + 1);
        uint64_t rss1 = qsf_rss_bytes(), used1 = qsf_rig_leak(&r);
        assert_true(used1 + weights < used0);
        assert_true(rss1 + weights * 95 / 100 < rss0);
    }
    qsf_rig_close(&r);
    assert_int_equal(qsf_rig_leak(&r), 0);
}

/* Memory fails at each place in turn; the old plan is restored completely. */
static void test_memory_fails(void **state) {
    (void)state;
    static const Way ways[] = {
        { 0,
          3,
          2,
          3,
          100,
          1,
          false,
          20,
          { .kind = QSF_IO_AUTO, .direct = QSF_DIRECT_AUTO } }, /* everything shrinks */
        { 100,
          0,
          1,
          64,
          3000,
          3,
          true,
          0,
          { .kind = QSF_IO_AUTO, .direct = QSF_DIRECT_AUTO } }, /* everything grows */
        { 60, 2, 1, 64, 95, 2, false, 40, { .kind = QSF_IO_PREAD, .direct = QSF_DIRECT_OFF } },
    };
    uint32_t failed = 0;
    write_model(&(QsfTinySpec){ .wtype = 8 });
    const QsfRigOptions o = { .path = path, .ctx = 128, .level = QK_LEVEL_UNKNOWN };
    float *want = undisturbed(&o);
    const int32_t *ids = ids_below(300);
    for (uint32_t i = 0; i < 3 * 45; i++) {
        QsfRig r;
        QsfErr err = { 0 };
        uint32_t items[MAX_UNITS];
        const Way before = { 40,         2,     2,
                             16,         128,   1,
                             i % 2 == 0, i % 3, { .kind = QSF_IO_AUTO, .direct = QSF_DIRECT_AUTO } };
        const Way *w = &ways[i / 45];
        qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
        qsf_test_expect_ok(replan(&r, &before, &err), &err);
        qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids, 50, NULL, NULL, &err), &err);
        QsfPlan p = plan_of(&r, w, items);
        QsfPool *pool;
        qsf_test_expect_ok(qsf_pool_create(&pool, w->threads, &r.ledger, &err), &err);
        qsf_mem_inject_failure(i % 45 + 1);
        int rc = qsf_forward_replan(r.fwd, &p, pool, &err);
        qsf_mem_inject_failure(0);
        check_logits(&r, want);
        assert_int_equal(qsf_forward_n_past(r.fwd), 50);
        qsf_pool_destroy(r.pool);
        r.pool = pool;
        if (rc != QSF_OK) {
            failed++;
            qsf_test_expect_err(&err, QSF_E_RUNTIME, "memory");
            qsf_err_clear(&err);
            assert_int_equal(qsf_forward_eval(r.fwd, ids + 50, 1, NULL, NULL, &err), QSF_E_RUNTIME);
            qsf_test_expect_err(&err, QSF_E_RUNTIME, "the memory plan could not be changed: ");
            qsf_err_clear(&err);
            assert_int_not_equal(qsf_forward_settle(r.fwd, NULL, NULL, NULL), QSF_OK);
            qsf_test_expect_ok(replan(&r, i % 2 == 0 ? &before : &whole, &err), &err);
        }
        qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids + 50, 40, NULL, NULL, &err), &err);
        check_logits(&r, want);
        qsf_rig_close(&r);
        assert_int_equal(qsf_rig_leak(&r), 0);
    }
    assert_true(failed > 20);
    free(want);
}

/* The same while the model is opened: an error, and no leak. */
static void test_memory_fails_at_first(void **state) {
    (void)state;
    uint32_t failed = 0;
    write_model(&(QsfTinySpec){ .wtype = 8 });
    const QsfRigOptions o = {
        .path = path, .ctx = 128, .pin_cap = 40000, .n_slots = 2, .level = QK_LEVEL_UNKNOWN
    };
    for (uint64_t n = 1; n <= 60; n++) {
        QsfRig r;
        QsfErr err = { 0 };
        qsf_mem_inject_failure(n);
        int rc = qsf_rig_open(&r, &o, &err);
        qsf_mem_inject_failure(0);
        if (rc == QSF_OK)
            qsf_rig_close(&r);
        else
            qsf_test_expect_err(&err, QSF_E_RUNTIME, "memory");
        failed += rc != QSF_OK;
        assert_int_equal(qsf_rig_leak(&r), 0);
    }
    assert_true(failed >= 10 && failed < 60);
}

/* The budget is too small for the new plan: the same as failing memory. */
static void test_over_budget(void **state) {
    (void)state;
    QsfRig r;
    QsfErr err = { 0 };
    Way w = { 0, 1, 1, 4, 100, 1, false, 0, { .kind = QSF_IO_AUTO, .direct = QSF_DIRECT_AUTO } };
    write_model(NULL);
    const QsfRigOptions o = { .path = path, .ctx = 128, .level = QK_LEVEL_UNKNOWN };
    float *want = undisturbed(&o);
    qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
    qsf_test_expect_ok(replan(&r, &w, &err), &err);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids_below(300), 50, NULL, NULL, &err), &err);
    qsf_ledger_set_limit(&r.ledger, qsf_rig_leak(&r) + 100000);
    assert_int_equal(replan(&r, &whole, &err), QSF_E_BUDGET);
    qsf_err_clear(&err);
    qsf_test_expect_ok(replan(&r, &w, &err), &err);
    qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids_below(300) + 50, 40, NULL, NULL, &err), &err);
    check_logits(&r, want);
    qsf_rig_close(&r);
    free(want);
}

/* --- cancelled at any moment: while weights are pinned, streamed, or used --- */

typedef struct Canceller {
    atomic_int *cancel;
    unsigned after_us;
    uint64_t at; /* the processor time when it happened */
} Canceller;

static void *cancel_later(void *arg) {
    Canceller *c = arg;
    usleep(c->after_us);
    c->at = qsf_test_cpu_ns();
    atomic_store(c->cancel, 1);
    return NULL;
}

static void test_cancel_any_time(void **state) {
    (void)state;
    uint32_t seed = 5, interrupted = 0;
    write_model(&(QsfTinySpec){ .wtype = 0, .hidden = 256, .ffn = 512, .layers = 3 });
    const QsfRigOptions o = { .path = path, .ctx = 128, .batch = 4, .threads = 2, .level = QK_LEVEL_UNKNOWN };
    float *want = undisturbed(&o);
    /* The thread that cancels may be late each time. */
    for (uint32_t i = 0; i < 24 || (interrupted == 0 && i < 2400); i++) {
        QsfRig r;
        QsfErr err = { 0 };
        pthread_t t;
        qsf_test_expect_ok(qsf_rig_open(&r, &o, &err), &err);
        Way w = random_way(&seed, 0);
        qsf_test_expect_ok(replan(&r, &w, &err), &err);
        Canceller c = { &r.cancel, i % 24 * (i % 24) * 30, 0 };
        assert_int_equal(pthread_create(&t, NULL, cancel_later, &c), 0);
        int rc = qsf_forward_eval(r.fwd, ids_below(300), N_TOKENS, NULL, NULL, &err);
        const uint64_t back = qsf_test_cpu_ns();
        pthread_join(t, NULL);
        atomic_store(&r.cancel, 0);
        if (rc != QSF_OK) {
            qsf_test_expect_err(&err, QSF_E_INTERRUPTED, "interrupted");
            assert_true(back < c.at + 2000000000u);
            qsf_err_clear(&err);
            interrupted++;
        }
        uint32_t past = qsf_forward_n_past(r.fwd);
        w = random_way(&seed, past);
        if (i % 2 == 0) qsf_test_expect_ok(replan(&r, &w, &err), &err);
        qsf_test_expect_ok(qsf_forward_eval(r.fwd, ids_below(300) + past, N_TOKENS - past, NULL, NULL, &err),
                           &err);
        check_logits(&r, want);
        qsf_rig_close(&r);
        assert_int_equal(qsf_rig_leak(&r), 0);
    }
    assert_true(interrupted > 0);
    free(want);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_same_logits, clean),
        cmocka_unit_test_teardown(test_fewer_bits, clean),
        cmocka_unit_test_teardown(test_bad_plans, clean),
        cmocka_unit_test_teardown(test_memory_returns, clean),
        cmocka_unit_test_teardown(test_memory_fails, clean),
        cmocka_unit_test_teardown(test_memory_fails_at_first, clean),
        cmocka_unit_test_teardown(test_over_budget, clean),
        cmocka_unit_test_teardown(test_cancel_any_time, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
