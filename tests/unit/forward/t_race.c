/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Races of numbers of threads on simulated machines: what wins, what it costs, and when it is done again. */
#include "src/forward/race.h"
#include "tests/harness/qsf_test.h"

#define MS 1000000.0

/* A machine: milliseconds that a token takes with the i-th number of threads, and by how much that varies
 * (0.1: by 10 % up or down). */
typedef struct Machine {
    double ms[QSF_WIDTHS];
    double noise;
    uint64_t seed;
    double done, ns; /* since it was reset */
} Machine;

static double noise(Machine *m) {
    m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
    return 1 + m->noise * (((double)(m->seed >> 40) / (1 << 23)) - 1);
}

static void init(QsfRace *r, const int *threads, int n, int start, uint64_t turn_ns) {
    QsfWidth w[QSF_WIDTHS];
    for (int i = 0; i < n; i++) w[i] = (QsfWidth){ threads[i], "some" };
    qsf_race_init(r, w, n, start, true, turn_ns);
}

static int index_of(const QsfRace *r) {
    for (int i = 0; i < r->n; i++)
        if (r->runner[i].width.threads == qsf_race_threads(r)) return i;
    fail_msg("%d threads are not among the numbers", qsf_race_threads(r));
    return 0;
}

/* One token, in ten steps, between which it may be given up, as the forward pass does. */
static void token(QsfRace *r, Machine *m) {
    double ns = 0;
    bool whole = true;
    const double factor = noise(m);
    for (int step = 0; step < 10; step++) {
        ns += m->ms[index_of(r)] * MS * factor / 10;
        if (!whole || !qsf_race_is_lost(r, 1, (uint64_t)ns)) continue;
        qsf_race_give_up(r, 1, (uint64_t)ns);
        whole = false;
    }
    if (whole) qsf_race_did(r, 1, (uint64_t)ns);
    m->done++;
    m->ns += ns;
}

static void tokens(QsfRace *r, Machine *m, int n) {
    for (int i = 0; i < n; i++) token(r, m);
}

/* How fast the machine was, of what it could have been with the best fixed number. */
static double share(const Machine *m, int n) {
    double best = m->ms[0];
    for (int i = 1; i < n; i++) best = m->ms[i] < best ? m->ms[i] : best;
    return m->done * best * MS / m->ns;
}

/* A hybrid processor, on which a wrong number costs 15 times the time. */
static void test_hybrid(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        QsfRace r;
        Machine m = { .ms = { 60, 70, 80, 75, 200, 900 }, .noise = 0.05, .seed = seed };
        init(&r, (const int[]){ 6, 10, 12, 14, 19, 20 }, 6, 0, (uint64_t)(50 * MS));
        tokens(&r, &m, 100);
        assert_int_equal(r.races, 1);
        assert_int_equal(qsf_race_threads(&r), 6);
        if (share(&m, 6) < 0.8) fail_msg("a share of %.3f in the first 100 tokens", share(&m, 6));
        tokens(&r, &m, 900);
        if (share(&m, 6) < 0.95) fail_msg("a share of %.3f in 1,000 tokens", share(&m, 6));
    }
}

/* The first guess is wrong: all cores are needed. */
static void test_wrong_start(void **state) {
    (void)state;
    QsfRace r;
    Machine m = { .ms = { 100, 55, 50 }, .noise = 0.04, .seed = 7 };
    init(&r, (const int[]){ 4, 7, 8 }, 3, 0, (uint64_t)(50 * MS));
    tokens(&r, &m, 60);
    assert_int_equal(qsf_race_threads(&r), 8);
    assert_true(share(&m, 3) > 0.75);
}

/* Two that are as fast: the smaller number. One thread that is much slower costs two or three tokens. */
static void test_equal(void **state) {
    (void)state;
    QsfRace r;
    Machine m = { .ms = { 90, 30.2, 30 }, .seed = 3 };
    init(&r, (const int[]){ 1, 7, 8 }, 3, 2, (uint64_t)(50 * MS));
    tokens(&r, &m, 40);
    assert_int_equal(qsf_race_threads(&r), 7);
    assert_true(r.runner[0].speed * 2 < r.runner[2].speed);
    char text[300];
    qsf_race_text(&r, text, sizeof text);
    assert_non_null(strstr(text, "7 (some) 1.00, 8 (some) 1.01"));
}

/* Short tokens: a turn has several. One interruption does not decide. */
static void test_interrupted(void **state) {
    (void)state;
    for (int when = 3; when < 200; when++) {
        QsfRace r;
        Machine m = { .ms = { 2, 1 }, .seed = 1 };
        init(&r, (const int[]){ 1, 2 }, 2, 1, (uint64_t)(50 * MS));
        for (int i = 0; i < 1000; i++) {
            m.ms[1] = i == when ? 40 : 1;
            token(&r, &m);
        }
        assert_int_equal(qsf_race_threads(&r), 2);
        assert_int_equal(r.races, 1);
    }
}

/* Tokens whose times differ much: enough of them are measured to see a difference of 15 %. */
static void test_noise(void **state) {
    (void)state;
    int right = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        QsfRace r;
        Machine m = { .ms = { 30, 26 }, .noise = 0.5, .seed = seed };
        init(&r, (const int[]){ 1, 2 }, 2, 1, (uint64_t)(50 * MS));
        while (r.races == 0) token(&r, &m);
        assert_true(m.done < 120);
        right += qsf_race_threads(&r) == 2;
    }
    assert_in_range(right, 90, 100);
}

/* The number in use has left the race when the last other one is given up. */
static void test_nothing_is_left(void **state) {
    (void)state;
    QsfRace r;
    Machine m = { .ms = { 100, 20 } };
    init(&r, (const int[]){ 1, 2 }, 2, 0, (uint64_t)(50 * MS));
    while (r.round < 3 && r.races == 0) token(&r, &m);
    if (qsf_race_runs(&r)) r.runner[0].in = false, r.at = 1;
    if (!qsf_race_runs(&r)) {
        qsf_race_start(&r);
        r.best = 0, r.runner[0].in = false, r.at = 1;
    }
    qsf_race_give_up(&r, 1, (uint64_t)(1000 * MS));
    assert_false(qsf_race_runs(&r));
    assert_int_equal(qsf_race_threads(&r), 1);
    tokens(&r, &m, 2000);
    assert_int_equal(qsf_race_threads(&r), 2);
}

/* Another program takes a core: a race within seconds. It ends: another one within half a minute. Every
 * minute as a whole is within a few percent of the best. */
static void test_load(void **state) {
    (void)state;
    QsfRace r;
    Machine m = { .ms = { 40, 21, 20 }, .noise = 0.1, .seed = 5 };
    init(&r, (const int[]){ 1, 3, 4 }, 3, 2, (uint64_t)(50 * MS));
    tokens(&r, &m, 500);
    assert_int_equal(qsf_race_threads(&r), 4);
    m.ms[1] = 24, m.ms[2] = 60;
    m.done = m.ns = 0;
    while (qsf_race_runs(&r) || qsf_race_threads(&r) != 3) token(&r, &m);
    assert_true(m.ns < 8e9);
    tokens(&r, &m, 100);
    m.ms[1] = 21, m.ms[2] = 15;
    m.done = m.ns = 0;
    while (qsf_race_runs(&r) || qsf_race_threads(&r) != 4) token(&r, &m);
    assert_true(m.ns < 30e9);
    m.done = m.ns = 0;
    const uint32_t races = r.races;
    tokens(&r, &m, 20000);
    assert_true(share(&m, 3) > 0.95 && r.races - races <= m.ns / 15e9);
}

/* A conversation grows, and each token takes longer: no race after the other because of that. */
static void test_context_grows(void **state) {
    (void)state;
    QsfRace r;
    Machine m = { .ms = { 40, 20 }, .noise = 0.02, .seed = 9 };
    init(&r, (const int[]){ 1, 2 }, 2, 1, (uint64_t)(50 * MS));
    for (int i = 0; i < 4000; i++) {
        m.ms[0] += 0.01, m.ms[1] += 0.005;
        token(&r, &m);
    }
    assert_int_equal(qsf_race_threads(&r), 2);
    assert_in_range(r.races, 2, 9);
}

/* A single number, and no time at all. */
static void test_alone(void **state) {
    (void)state;
    QsfRace r;
    Machine m = { .ms = { 10 } };
    init(&r, (const int[]){ 1 }, 1, 0, (uint64_t)(50 * MS));
    tokens(&r, &m, 100);
    qsf_race_start(&r);
    assert_false(qsf_race_runs(&r));
    assert_int_equal(r.races, 0);
    char text[50] = "x";
    qsf_race_text(&r, text, sizeof text);
    assert_string_equal(text, "");
    init(&r, (const int[]){ 1, 2 }, 2, 1, 0);
    for (int i = 0; i < 100; i++) qsf_race_did(&r, i % 2, 0);
    assert_false(qsf_race_runs(&r));
    assert_int_equal(qsf_race_threads(&r), 2);
}

/* A race of turns without a minimum, and work that is not always the same: pieces of a prompt. */
static void test_pieces(void **state) {
    (void)state;
    QsfRace r;
    init(&r, (const int[]){ 6, 14, 20 }, 3, 1, (uint64_t)(5 * MS));
    static const double speed[] = { 6, 14, 13 }; /* units per ms */
    for (int i = 0; i < 300; i++) {
        const double work = i % 7 == 0 ? 200 : i % 7 == 3 ? 20 : 90;
        qsf_race_did(&r, work, (uint64_t)(work / speed[index_of(&r)] * MS));
    }
    assert_int_equal(qsf_race_threads(&r), 14);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_hybrid),
                                        cmocka_unit_test(test_wrong_start),
                                        cmocka_unit_test(test_equal),
                                        cmocka_unit_test(test_interrupted),
                                        cmocka_unit_test(test_load),
                                        cmocka_unit_test(test_noise),
                                        cmocka_unit_test(test_nothing_is_left),
                                        cmocka_unit_test(test_context_grows),
                                        cmocka_unit_test(test_alone),
                                        cmocka_unit_test(test_pieces) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
