/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The merge loop compared with the definition: repeatedly merge the pair with the lowest rank, the leftmost
 * of equals, found by scanning all of them. */
#include "src/token/merge.h"

#include <stdlib.h>
#include <string.h>

#include "tests/harness/qsf_test.h"

enum { SHORT = 300, LONG = 5000 }; /* LONG uses the sorted list */

/* Pairs that may be merged, and their results, at random; ranks have few bits, so that some are equal. */
typedef struct Rule {
    uint32_t seed, mask;
} Rule;

static uint32_t mix(uint32_t a, uint32_t b) {
    uint64_t x = ((uint64_t)a << 32 | b) * 0x9E3779B97F4A7C15u;
    return (uint32_t)((x ^ x >> 29) * 0xBF58476D1CE4E5B9u >> 32);
}

static bool join(const void *ctx, const QsfSymbol *left, const QsfSymbol *right, uint32_t *rank,
                 int32_t *id) {
    const Rule *r = ctx;
    uint32_t x = mix(r->seed ^ (uint32_t)left->id, (uint32_t)right->id);
    if (x % 3 == 0) return false;
    *rank = mix(x, r->seed) & r->mask;
    *id = (int32_t)(x >> 8 & 63);
    return true;
}

/* Merges one pair of n symbols, and returns the new number of symbols. */
static size_t join_best(const Rule *r, QsfSymbol *s, size_t n) {
    size_t best = n;
    uint32_t low = 0;
    int32_t made = -1;
    for (size_t i = 0; i + 1 < n; i++) {
        uint32_t rank;
        int32_t id;
        if (!join(r, &s[i], &s[i + 1], &rank, &id) || (best < n && rank >= low)) continue;
        best = i;
        low = rank;
        made = id;
    }
    if (best == n) return n;
    s[best].len += s[best + 1].len;
    s[best].id = made;
    memmove(&s[best + 1], &s[best + 2], (n - best - 2) * sizeof *s);
    return n - 1;
}

static void check(QsfMerger *m, const Rule *r, size_t n) {
    QsfSymbol *want = malloc(n * sizeof *want);
    QsfErr e = { 0 };
    assert_non_null(want);
    qsf_merger_clear(m);
    for (size_t i = 0; i < n; i++) {
        int32_t id = (int32_t)(mix(r->seed, (uint32_t)i) & 31);
        uint32_t len = 1 + (uint32_t)(i % 3);
        want[i] = (QsfSymbol){ .len = len, .id = id };
        qsf_test_expect_ok(qsf_merger_add(m, len, id, &e), &e);
    }
    for (size_t before = n + 1; n < before;) {
        before = n;
        n = join_best(r, want, n);
    }
    qsf_test_expect_ok(qsf_merger_run(m, join, r, &e), &e);
    size_t k = 0;
    for (int32_t i = 0; i >= 0; i = m->syms[i].next, k++) {
        assert_true(k < n);
        assert_int_equal(m->syms[i].id, want[k].id);
        assert_int_equal(m->syms[i].len, want[k].len);
    }
    assert_int_equal(k, n);
    free(want);
}

static void test_rule(void **state) {
    static const uint32_t masks[] = { 0, 3, 0xFFF, 0x3FFFFF, 0xFFFFFFFF, 0xFFC00000 };
    QsfMerger m = { 0 };
    (void)state;
    for (uint32_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        for (uint32_t n = 1; n < SHORT; n += 1 + n / 4)
            check(&m, &(Rule){ .seed = i * 1000 + n, .mask = masks[i] }, n);
        check(&m, &(Rule){ .seed = i, .mask = masks[i] }, LONG);
        check(&m, &(Rule){ .seed = i + 77, .mask = masks[i] }, SHORT); /* in the memory of the long one */
    }
    qsf_merger_free(&m);
}

/* All memory is charged before it is taken, and one symbol more than fits is refused. */
static void test_ledger(void **state) {
    static const uint64_t limits[] = { 1000, 20 * LONG, 30 * LONG, 10u << 20 };
    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const bool fits = i == 3;
        QsfLedger l;
        QsfErr e = { 0 };
        int rc = QSF_OK;
        qsf_ledger_init(&l, limits[i]);
        QsfMerger m = { .ledger = &l };
        for (uint32_t k = 0; k < LONG && rc == QSF_OK; k++) rc = qsf_merger_add(&m, 1, (int32_t)(k & 63), &e);
        if (rc == QSF_OK) rc = qsf_merger_run(&m, join, &(Rule){ .seed = 1, .mask = 0xFFF }, &e);
        assert_int_equal(rc, fits ? QSF_OK : QSF_E_BUDGET);
        assert_int_equal(l.total, m.cap_syms * sizeof *m.syms + (m.cap_heap + m.cap_first) * sizeof *m.heap);
        assert_true(l.total_peak <= limits[i]);
        qsf_merger_free(&m);
        assert_int_equal(l.total, 0);
        qsf_ledger_destroy(&l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rule), cmocka_unit_test(test_ledger) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
