/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Row cache: what it holds and what it evicts equals a plain list in order of use. */
#include "src/forward/ops/rowcache.h"
#include "src/plan/layout.h"
#include "tests/harness/qsf_test.h"

enum { ROW = 36, MOST = 200 };

/* Ids, newest first. */
typedef struct Model {
    uint32_t id[MOST];
    uint32_t n, room;
} Model;

static void model_front(Model *m, uint32_t at, uint32_t id) {
    memmove(m->id + 1, m->id, at * sizeof *m->id);
    m->id[0] = id;
}

static bool model_find(Model *m, uint32_t id) {
    for (uint32_t i = 0; i < m->n; i++) {
        if (m->id[i] != id) continue;
        model_front(m, i, id);
        return true;
    }
    return false;
}

static void model_put(Model *m, uint32_t id) {
    if (m->n < m->room) m->n++;
    if (m->n > 0) model_front(m, m->n - 1, id);
}

static void make_row(uint8_t *row, uint32_t id) {
    for (unsigned i = 0; i < ROW; i++) row[i] = (uint8_t)(id * 31 + (id >> 8) * 7 + i);
}

static uint32_t next_random(uint32_t *state) { return (*state = *state * 1664525u + 1013904223u) >> 8; }

/* ids: number of distinct ids, stride: their distance. */
static void random_uses(uint32_t rows, uint32_t ids, uint32_t stride, uint32_t seed) {
    QsfLedger ledger;
    QsfRowCache c;
    QsfErr err = { 0 };
    Model m = { .room = rows };
    uint8_t row[ROW];
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_rowcache_init(&c, rows, ROW, &ledger, &err), &err);
    assert_int_equal(ledger.used[QSF_MEM_EMBED], qsf_rowcache_bytes(rows, ROW));
    uint64_t charged = ledger.total;
    for (int step = 0; step < 3000; step++) {
        uint32_t id = next_random(&seed) % ids * stride;
        if (next_random(&seed) % 3 == 0)
            id = next_random(&seed) % (ids / 4 + 1) * stride; /* some are frequent */
        const uint8_t *got = qsf_rowcache_find(&c, id);
        assert_true((got != NULL) == model_find(&m, id));
        make_row(row, id);
        if (got != NULL) {
            assert_memory_equal(got, row, ROW);
        } else {
            qsf_rowcache_put(&c, id, row);
            model_put(&m, id);
        }
    }
    for (uint32_t i = 0, e = c.newest; i < m.n; e = c.entry[e - 1].older, i++) {
        assert_true(e != 0);
        assert_int_equal(c.entry[e - 1].id, m.id[i]);
    }
    assert_int_equal(c.used, m.n);
    assert_int_equal(ledger.total, charged);
    qsf_rowcache_free(&c);
    assert_int_equal(ledger.total, 0);
    qsf_ledger_destroy(&ledger);
}

static void test_order(void **state) {
    (void)state;
    static const uint32_t rows[] = { 0, 1, 2, 3, 7, 8, 64, 65, MOST };
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        random_uses(rows[i], rows[i] + 1, 1, i + 1);
        random_uses(rows[i], 3 * rows[i] + 2, 1, i + 50);
        random_uses(rows[i], 2 * rows[i] + 5, 4096, i + 100);  /* equal in their low bits */
        random_uses(rows[i], 300, 0xFFFFFFFFu / 300, i + 200); /* over the whole range */
    }
}

/* The end of the last row, and the start of the index, are inside the mapping: otherwise there is a page
 * fault or a sanitizer report. */
static void test_size(void **state) {
    (void)state;
    for (uint32_t rows = 1; rows < 400; rows += 13) {
        for (uint64_t row = 1; row < 9000; row += 701) {
            QsfLedger ledger;
            QsfRowCache c;
            QsfErr err = { 0 };
            qsf_ledger_init(&ledger, 0);
            qsf_test_expect_ok(qsf_rowcache_init(&c, rows, row, &ledger, &err), &err);
            assert_true(c.mask + 1 >= 2 * rows && c.stride >= row && c.stride % 64 == 0);
            assert_true((uint8_t *)(c.index + c.mask + 1) <= (uint8_t *)c.mem + c.bytes);
            assert_true((uint8_t *)(c.entry + rows) <= (uint8_t *)c.index);
            qsf_rowcache_free(&c);
            qsf_ledger_destroy(&ledger);
        }
    }
    assert_int_equal(qsf_rowcache_bytes(0, 100), 0);
    assert_int_equal(qsf_rowcache_bytes(64, 1152),
                     64 * (1152 + 32) + 4 * 128 + (4096 - (64 * 1184 + 512) % 4096));
}

static void test_budget(void **state) {
    (void)state;
    QsfLedger ledger;
    QsfRowCache c;
    QsfErr err = { 0 };
    qsf_ledger_init(&ledger, 5000);
    assert_int_equal(qsf_rowcache_init(&c, 100, 1000, &ledger, &err), QSF_E_BUDGET);
    qsf_test_expect_err(&err, QSF_E_BUDGET, "row cache");
    assert_null(qsf_rowcache_find(&c, 5));
    qsf_rowcache_put(&c, 5, "x");
    qsf_rowcache_free(&c);
    assert_int_equal(ledger.total, 0);
    qsf_ledger_destroy(&ledger);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
