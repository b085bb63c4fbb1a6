/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The file with the experts that were used: it is read as it was written, nothing else is accepted, and old
 * counts fade. And what other budgets mean for the experts. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/crc32.h"
#include "src/engine/expert_budgets.h"
#include "src/engine/habits/file.h"
#include "tests/harness/qsf_test.h"

enum { N = 48, BYTES = 28 + 4 * QSF_EXPERT_DEPTHS + 2 * N + 4 };
static const uint64_t MODEL = 0x0123456789ABCDEFu;
static QsfLedger ledger;

static void init(QsfHabits *h) {
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_habits_init(h, N, &ledger, &err), &err);
}

/* Expert e was used e times in 100 tokens. */
static QsfHabits example(void) {
    uint32_t uses[N], depth[QSF_EXPERT_DEPTHS] = { 0 };
    QsfHabits h;
    init(&h);
    for (uint32_t e = 0; e < N; e++) uses[e] = e;
    depth[0] = 3;
    depth[QSF_EXPERT_DEPTHS - 1] = 1;
    qsf_habits_add(&h, uses, 100, depth);
    return h;
}

static const char *path(void) {
    static char text[600];
    snprintf(text, sizeof text, "%s/experts/x", qsf_test_tmp("habits"));
    return text;
}

static void expect_same(const QsfHabits *a, const QsfHabits *b) {
    assert_int_equal(a->tokens, b->tokens);
    assert_memory_equal(a->depth, b->depth, sizeof a->depth);
    assert_memory_equal(a->uses, b->uses, N * sizeof *a->uses);
}

static void test_round_trip(void **state) {
    QsfErr err = { 0 };
    QsfHabits want = example(), got;
    struct stat st;
    (void)state;
    init(&got);
    qsf_test_expect_ok(qsf_habits_read(&got, path(), MODEL, &err), &err);
    assert_int_equal(got.tokens, 0); /* there is none */
    for (int i = 0; i < 2; i++) {    /* also in place of another */
        qsf_test_expect_ok(qsf_habits_write(&want, path(), MODEL, &err), &err);
        qsf_test_expect_ok(qsf_habits_read(&got, path(), MODEL, &err), &err);
        expect_same(&got, &want);
        assert_int_equal(stat(path(), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(st.st_size, BYTES);
        want.uses[3] = 7;
    }
    qsf_habits_free(&want);
    qsf_habits_free(&got);
    unlink(path());
    assert_int_equal(ledger.total, 0);
}

/* Writes n bytes of a changed file, with a right checksum if `sum`, and expects the message. */
static void refuse(uint32_t at, uint8_t change, size_t n, bool sum, const char *message) {
    uint8_t b[BYTES + 8] = { 0 };
    QsfErr err = { 0 };
    QsfHabits h = example(), got;
    init(&got);
    qsf_test_expect_ok(qsf_habits_write(&h, path(), MODEL, &err), &err);
    int fd = open(path(), O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, b, BYTES, 0), BYTES);
    b[at] ^= change;
    const uint32_t crc = qsf_crc32(0, b, BYTES - 4);
    for (unsigned i = 0; sum && i < 4; i++) b[BYTES - 4 + i] = (uint8_t)(crc >> 8 * i);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, b, n, 0), n);
    close(fd);
    assert_int_equal(qsf_habits_read(&got, path(), MODEL, &err), QSF_E_MODEL);
    qsf_test_expect_err(&err, QSF_E_MODEL, message);
    assert_int_equal(got.tokens, 0);
    for (uint32_t e = 0; e < N; e++) assert_int_equal(got.uses[e], 0);
    qsf_habits_free(&h);
    qsf_habits_free(&got);
    unlink(path());
}

static void test_refused(void **state) {
    (void)state;
    refuse(0, 1, BYTES, true, "is not a file of habits");
    refuse(0, 0, 10, true, "is not a file of habits");
    refuse(0, 0, 0, true, "is not a file of habits");
    refuse(8, 2, BYTES, true, "is of another format version");
    refuse(12, 1, BYTES, true, "is of another model"); /* another number of experts */
    refuse(14, 255, BYTES, true, "is of another model");
    refuse(16, 1, BYTES, true, "is of another model");
    refuse(26, 1, BYTES, true, "is damaged"); /* more tokens than are ever counted */
    refuse(100, 1, BYTES, false, "is damaged");
    refuse(BYTES - 1, 1, BYTES, false, "is damaged");
    refuse(0, 0, BYTES - 1, true, "is damaged");
    refuse(0, 0, BYTES + 1, true, "is damaged");
}

/* No damage goes unnoticed, and what a forged file says is within bounds. */
static void test_every_byte(void **state) {
    QsfErr err = { 0 };
    QsfHabits h = example(), got;
    (void)state;
    for (uint32_t at = 0; at < BYTES; at += 3) refuse(at, 0x80, BYTES, false, "x: is ");
    for (size_t n = 1; n < BYTES + 4; n += 5)
        if (n != BYTES) refuse(0, 0, n, false, "x: is ");
    init(&got);
    for (uint32_t e = 0; e < N; e++) h.uses[e] = UINT16_MAX;
    for (unsigned i = 0; i < QSF_EXPERT_DEPTHS; i++) h.depth[i] = UINT32_MAX;
    qsf_test_expect_ok(qsf_habits_write(&h, path(), MODEL, &err), &err);
    qsf_test_expect_ok(qsf_habits_read(&got, path(), MODEL, &err), &err);
    for (uint32_t e = 0; e < N; e++) assert_int_equal(got.uses[e], got.tokens);
    for (unsigned i = 0; i < QSF_EXPERT_DEPTHS; i++) assert_int_equal(got.depth[i], 0);
    qsf_habits_free(&h);
    qsf_habits_free(&got);
    unlink(path());
}

static void test_unreadable(void **state) {
    QsfErr err = { 0 };
    QsfHabits h = example();
    char folder[600];
    (void)state;
    snprintf(folder, sizeof folder, "%s/experts/x", qsf_test_tmp("habits"));
    assert_int_equal(mkdir(folder, 0700), 0); /* a folder with the name of the file */
    assert_int_equal(qsf_habits_read(&h, folder, MODEL, &err), QSF_E_RUNTIME);
    qsf_test_expect_err(&err, QSF_E_RUNTIME, "experts/x");
    assert_int_equal(qsf_habits_write(&h, folder, MODEL, &err), QSF_E_RUNTIME);
    qsf_test_expect_err(&err, QSF_E_RUNTIME, "experts/x");
    rmdir(folder);
    qsf_ledger_set_limit(&ledger, 10);
    QsfHabits none = { 0 };
    assert_int_equal(qsf_habits_init(&none, N, &ledger, &err), QSF_E_BUDGET);
    qsf_err_clear(&err);
    qsf_ledger_set_limit(&ledger, 0);
    qsf_habits_free(&none);
    qsf_habits_free(&h);
}

/* Counts are halved, and what was used earlier counts less and less. */
static void test_fade(void **state) {
    uint32_t uses[N] = { 0 }, depth[QSF_EXPERT_DEPTHS] = { 0 };
    QsfHabits h = example();
    (void)state;
    uses[0] = 1000;
    depth[1] = 1;
    for (int i = 0; i < 20; i++) {
        qsf_habits_add(&h, uses, 1000, depth);
        assert_true(h.tokens <= QSF_HABITS_TOKENS && h.uses[0] <= h.tokens);
    }
    assert_true(h.uses[0] > 4000 && h.uses[0] + 120u > h.tokens);
    assert_true(h.uses[N - 1] < N / 2);
    assert_true(h.depth[1] > 60000 && h.depth[0] < 2000);
    uses[0] = UINT32_MAX;
    qsf_habits_add(&h, uses, UINT32_MAX, NULL);
    assert_true(h.tokens <= QSF_HABITS_TOKENS && h.uses[0] <= h.tokens + 1u);
    qsf_habits_add(&h, uses, 0, depth); /* nothing */
    qsf_habits_free(&h);
}

/* ---- budgets ---- */

#define MB (1ull << 20)

/* 1000 experts of 1 MB, half of which are in memory with 1000 MB; uses are spread evenly. */
static QsfExpertFacts facts(uint32_t *depth) {
    for (unsigned i = 0; i < QSF_EXPERT_DEPTHS; i++) depth[i] = 100;
    return (QsfExpertFacts){ .budget = 1000 * MB,
                             .from = 1000 * MB,
                             .from_slots = 500,
                             .slot_bytes = MB,
                             .n = 1000,
                             .slots = 500,
                             .used = 8,
                             .depth = depth,
                             .token_ns = 100e6,
                             .read_ns = 80e6,
                             .wait_ns = 60e6 };
}

static void test_budgets(void **state) {
    uint32_t depth[QSF_EXPERT_DEPTHS];
    QSFExpertBudget x[QSF_EXPERT_BUDGETS];
    const QsfExpertFacts f = facts(depth);
    const uint32_t n = qsf_expert_budgets(&f, x, QSF_EXPERT_BUDGETS);
    unsigned now = 0;
    (void)state;
    assert_in_range(n, 5, 9);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(x[i].budget % MB == 0);
        assert_true(i == 0 || (x[i].budget > x[i - 1].budget && x[i].hits >= x[i - 1].hits));
        /* As many hits as experts in memory; 40 ms of computing; 1.2 ms for each percent that is read, and
         * 1.6 ms for what is read more than now. */
        assert_true(x[i].hits > x[i].resident - 0.01 && x[i].hits < x[i].resident + 0.01);
        const double misses = 1 - x[i].hits,
                     ms = misses < 0.5 ? 40 + 120 * misses : 100 + 160 * (misses - 0.5);
        assert_true(x[i].tps > 999 / ms && x[i].tps < 1001 / ms);
        now += x[i].budget == f.budget;
    }
    assert_int_equal(now, 1);
    assert_true(x[0].resident < 0.3 && x[0].resident > 0);
    assert_true(x[n - 1].resident == 1 && x[n - 1].hits == 1 && x[n - 1].tps > 24.9);
    assert_true(x[n - 1].budget >= 1500 * MB && x[n - 1].budget < 1510 * MB);
    assert_int_equal(qsf_expert_budgets(&f, x, 2), 2);
    /* The planner knows better with which budget all are in memory: earlier, or later. */
    for (uint64_t mb = 1450; mb <= 1550; mb += 100) {
        QsfExpertFacts known = f;
        known.full = mb * MB;
        const uint32_t k = qsf_expert_budgets(&known, x, QSF_EXPERT_BUDGETS);
        assert_int_equal(x[k - 1].budget, mb * MB);
        for (uint32_t i = 0; i < k; i++) assert_int_equal(x[i].resident == 1, i == k - 1);
    }
}

static void test_no_budgets(void **state) {
    uint32_t depth[QSF_EXPERT_DEPTHS];
    QSFExpertBudget x[QSF_EXPERT_BUDGETS];
    QsfExpertFacts f = facts(depth);
    (void)state;
    f.slots = 0; /* the dense part streams */
    assert_int_equal(qsf_expert_budgets(&f, x, QSF_EXPERT_BUDGETS), 0);
    f = facts(depth);
    f.from_slots = 0; /* no plan with slots */
    assert_int_equal(qsf_expert_budgets(&f, x, QSF_EXPERT_BUDGETS), 0);
    f = facts(depth);
    f.n = 0; /* a dense model */
    assert_int_equal(qsf_expert_budgets(&f, x, QSF_EXPERT_BUDGETS), 0);
    f = facts(depth);
    memset(depth, 0, sizeof depth); /* nothing was chosen */
    assert_int_equal(qsf_expert_budgets(&f, x, QSF_EXPERT_BUDGETS), 0);
}

/* Nothing is read: how long a read would take is not known, what less memory means for hits is. */
static void test_all_in_memory(void **state) {
    uint32_t depth[QSF_EXPERT_DEPTHS];
    QSFExpertBudget x[QSF_EXPERT_BUDGETS];
    QsfExpertFacts f = facts(depth);
    (void)state;
    f.slots = f.n;
    f.budget = 4000 * MB;
    f.wait_ns = 0;
    const uint32_t n = qsf_expert_budgets(&f, x, QSF_EXPERT_BUDGETS);
    assert_in_range(n, 3, 9);
    assert_true(x[n - 1].budget == f.budget && x[n - 1].hits == 1 && x[n - 1].tps > 9.9 &&
                x[n - 1].tps < 10.1);
    assert_true(x[0].hits < 0.5 && x[0].tps == 0);
    f.token_ns = 0; /* no answer yet */
    assert_int_equal(qsf_expert_budgets(&f, x, QSF_EXPERT_BUDGETS), n);
    assert_true(x[n - 1].tps == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_every_byte), cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_fade),       cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_no_budgets), cmocka_unit_test(test_all_in_memory),
    };
    qsf_ledger_init(&ledger, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
