/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The worker pool: every item once, boundaries at multiples of the grain, no CPU when idle. */
#include "tests/harness/qsf_test.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/pool.h"

enum { MAX_ITEMS = 1000 };

typedef struct Job {
    unsigned char hits[MAX_ITEMS];
    size_t grain, n;
    int bad_border[64];
} Job;

static void count(void *arg, int worker, size_t begin, size_t end) {
    Job *j = arg;
    if (begin % j->grain != 0 || (end % j->grain != 0 && end != j->n) || end > j->n)
        j->bad_border[worker] = 1;
    for (size_t i = begin; i < end && i < MAX_ITEMS; i++) j->hits[i]++;
}

static void check_run(QsfPool *p, size_t n, size_t grain) {
    Job j = { .grain = grain, .n = n };
    qsf_pool_run(p, count, &j, n, grain);
    for (size_t i = 0; i < MAX_ITEMS; i++)
        if (j.hits[i] != (i < n))
            fail_msg("item %zu of %zu (grain %zu) ran %d times", i, n, grain, j.hits[i]);
    for (int i = 0; i < 64; i++) assert_int_equal(j.bad_border[i], 0);
}

static void test_shares(void **state) {
    static const size_t grains[] = { 1, 3, 16, 1000, 5000 };
    QsfLedger l;
    QsfErr e = { 0 };
    (void)state;
    qsf_ledger_init(&l, 0);
    for (int threads = 1; threads <= 5; threads++) {
        QsfPool *p;
        qsf_test_expect_ok(qsf_pool_create(&p, threads, &l, &e), &e);
        assert_int_equal(qsf_pool_threads(p), threads);
        assert_true(l.used[QSF_MEM_STACKS] >= (uint64_t)(threads - 1) * 256 * 1024);
        for (size_t g = 0; g < sizeof grains / sizeof *grains; g++)
            for (size_t n = 0; n <= MAX_ITEMS; n += n < 40 ? 1 : 97) check_run(p, n, grains[g]);
        qsf_pool_destroy(p);
        assert_int_equal(l.total, 0);
    }
    qsf_pool_destroy(NULL);
    qsf_ledger_destroy(&l);
}

typedef struct Slow {
    atomic_int by_others, all;
} Slow;

/* All threads except the caller are slow, as if they had lost their CPU. */
static void slow_worker(void *arg, int worker, size_t begin, size_t end) {
    Slow *s = arg;
    atomic_fetch_add(&s->all, (int)(end - begin));
    if (worker == 0) return;
    atomic_fetch_add(&s->by_others, (int)(end - begin));
    usleep(30000);
}

/* A delayed thread delays the job by the items it has begun, not by all that would be its share. */
static void test_delayed_thread(void **state) {
    QsfLedger l;
    QsfErr e = { 0 };
    QsfPool *p;
    (void)state;
    qsf_ledger_init(&l, 0);
    qsf_test_expect_ok(qsf_pool_create(&p, 2, &l, &e), &e);
    int once = 0;
    for (int round = 0; round < 20; round++) {
        Slow s = { 0 };
        qsf_pool_run(p, slow_worker, &s, 800, 1);
        assert_int_equal(atomic_load(&s.all), 800);
        once += atomic_load(&s.by_others) <= 100; /* of its own 400 */
    }
    assert_true(once >= 10); /* this thread may be delayed, too */
    qsf_pool_destroy(p);
    qsf_ledger_destroy(&l);
}

/* Many tiny jobs, with pauses long enough for workers to fall asleep in between. */
static void test_many_jobs(void **state) {
    QsfLedger l;
    QsfErr e = { 0 };
    QsfPool *p;
    (void)state;
    qsf_ledger_init(&l, 0);
    for (int threads = 2; threads <= 3; threads++) {
        qsf_test_expect_ok(qsf_pool_create(&p, threads, &l, &e), &e);
        for (int i = 0; i < 5000; i++) {
            check_run(p, 64, 1);
            if (i % 50 == 0) nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
        }
        qsf_pool_destroy(p);
    }
    qsf_ledger_destroy(&l);
}

/* A worker may start a short job when that is done and the pool is shutting down: it must not wait for
 * another job. */
static void test_ends_after_a_short_job(void **state) {
    QsfLedger l;
    QsfErr e = { 0 };
    (void)state;
    qsf_ledger_init(&l, 0);
    uint64_t end = qsf_now_ns() + 2000000000u;
    for (int i = 0; i < 20000 && qsf_now_ns() < end; i++) {
        QsfPool *p;
        qsf_test_expect_ok(qsf_pool_create(&p, 4, &l, &e), &e);
        for (int k = 0; k < i % 3; k++) check_run(p, 2 + (size_t)(i * 7 % 64), 1);
        qsf_pool_destroy(p);
    }
    qsf_ledger_destroy(&l);
}

/* Which threads worked. */
static void who(void *arg, int worker, size_t begin, size_t end) {
    atomic_uint *seen = arg;
    (void)begin, (void)end;
    atomic_fetch_or(seen, 1u << worker);
    usleep(100);
}

/* Fewer threads than there are: the others do nothing, even if they wait for a job when the number falls; and
 * all come back. */
static void test_use(void **state) {
    QsfLedger l;
    QsfErr e = { 0 };
    QsfPool *p;
    (void)state;
    qsf_ledger_init(&l, 0);
    qsf_test_expect_ok(qsf_pool_create(&p, 4, &l, &e), &e);
    assert_int_equal(qsf_pool_used(p), 4);
    for (int round = 0; round < 300; round++) {
        const int used = 1 + (round * 7 + round / 5) % 4;
        atomic_uint seen = 0;
        qsf_pool_use(p, used);
        assert_int_equal(qsf_pool_used(p), used);
        qsf_pool_run(p, who, &seen, 40, 1);
        if (atomic_load(&seen) >> used != 0)
            fail_msg("round %d: threads %x of %d", round, atomic_load(&seen), used);
        check_run(p, 333, 3);
    }
    atomic_uint seen = 0;
    qsf_pool_use(p, 99);
    assert_int_equal(qsf_pool_used(p), 4);
    while (atomic_load(&seen) != 15) qsf_pool_run(p, who, &seen, 400, 1);
    qsf_pool_use(p, 0);
    assert_int_equal(qsf_pool_used(p), 1);
    check_run(p, 100, 1);
    qsf_pool_destroy(p); /* while threads are not in use */
    assert_int_equal(l.total, 0);
    qsf_ledger_destroy(&l);
}

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void test_idle_costs_nothing(void **state) {
    QsfLedger l;
    QsfErr e = { 0 };
    QsfPool *p;
    (void)state;
    qsf_ledger_init(&l, 0);
    qsf_test_expect_ok(qsf_pool_create(&p, 2, &l, &e), &e);
    check_run(p, 100, 1);
    double before = cpu_seconds();
    nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
    assert_true(cpu_seconds() - before < 0.03);
    qsf_pool_destroy(p);

    /* Threads that are not in use do not wait for jobs of the others. */
    qsf_test_expect_ok(qsf_pool_create(&p, 8, &l, &e), &e);
    qsf_pool_use(p, 1);
    check_run(p, 100, 1);
    nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
    before = cpu_seconds();
    for (int i = 0; i < 300; i++) {
        check_run(p, 2, 1);
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    assert_true(cpu_seconds() - before < 0.1);
    qsf_pool_destroy(p);
    qsf_ledger_destroy(&l);
}

/* ---- gates ---- */

enum { MOST_TASKS = 40 };

typedef struct Gated {
    QsfGate gate;
    bool slow;
    unsigned tasks, done[MOST_TASKS], sum; /* sum: of done, made by who opens the gate */
    atomic_uint opened, pieces;
} Gated;

static void gated_piece(void *arg, int worker, size_t begin, size_t end) {
    Gated *g = arg;
    unsigned task;
    (void)worker;
    while (qsf_gate_take(&g->gate, &task)) {
        /* Long enough for the others to wait, and to sleep. */
        if (g->slow) nanosleep(&(struct timespec){ .tv_nsec = 300000 }, NULL);
        g->done[task]++;
        if (!qsf_gate_done(&g->gate)) continue;
        for (unsigned i = 0; i < g->tasks; i++) g->sum += g->done[i];
        atomic_fetch_add(&g->opened, 1);
        qsf_gate_open(&g->gate);
    }
    qsf_gate_wait(&g->gate);
    if (g->sum == g->tasks) atomic_fetch_add(&g->pieces, (unsigned)(end - begin));
}

static void check_gate(QsfPool *p, unsigned tasks, size_t items, bool slow) {
    Gated g = { .slow = slow, .tasks = tasks };
    qsf_gate_init(&g.gate, tasks);
    qsf_pool_run(p, gated_piece, &g, items, 1);
    for (unsigned i = 0; i < tasks; i++) assert_int_equal(g.done[i], 1);
    assert_int_equal(atomic_load(&g.opened), 1);
    assert_int_equal(atomic_load(&g.pieces), items);
    qsf_pool_run(p, gated_piece, &g, items, 1); /* another job, as of the next rows of a matrix */
    assert_int_equal(atomic_load(&g.pieces), 2 * items);
}

/* Every task is done once, and no piece continues before all are done. */
static void test_gates(void **state) {
    QsfLedger l;
    QsfErr e = { 0 };
    (void)state;
    qsf_ledger_init(&l, 0);
    for (int threads = 1; threads <= 5; threads++) {
        QsfPool *p;
        qsf_test_expect_ok(qsf_pool_create(&p, threads, &l, &e), &e);
        for (unsigned tasks = 1; tasks <= MOST_TASKS; tasks += tasks < 8 ? 1 : 8) {
            check_gate(p, tasks, 1, false);
            for (int i = 0; i < 50; i++) check_gate(p, tasks, 17, false);
        }
        check_gate(p, 3, 17, true);
        qsf_pool_destroy(p);
    }
    qsf_ledger_destroy(&l);
}

static void test_budget(void **state) {
    QsfLedger l;
    QsfErr e = { 0 };
    QsfPool *p;
    (void)state;
    qsf_ledger_init(&l, 1000);
    assert_int_equal(qsf_pool_create(&p, 4, &l, &e), QSF_E_BUDGET);
    assert_null(p);
    assert_int_equal(l.total, 0);
    qsf_err_clear(&e);
    qsf_test_expect_ok(qsf_pool_create(&p, 1, &l, &e), &e);
    qsf_pool_destroy(p);
    qsf_ledger_destroy(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_shares),
                                        cmocka_unit_test(test_delayed_thread),
                                        cmocka_unit_test(test_many_jobs),
                                        cmocka_unit_test(test_use),
                                        cmocka_unit_test(test_ends_after_a_short_job),
                                        cmocka_unit_test(test_idle_costs_nothing),
                                        cmocka_unit_test(test_gates),
                                        cmocka_unit_test(test_budget) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
