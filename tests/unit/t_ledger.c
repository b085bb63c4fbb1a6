/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The RAM ledger, mapped memory and the arena on top of them. */
#include "tests/harness/qsf_test.h"

#include "src/base/arena.h"
#include "src/base/clock.h"
#include "src/base/ledger.h"

static void test_limit(void **state) {
    QsfLedger l, snap;
    QsfErr e = { 0 };
    (void)state;
    qsf_ledger_init(&l, 1000);
    qsf_test_expect_ok(qsf_ledger_reserve(&l, QSF_MEM_KV, 600, "cache", &e), &e);
    qsf_test_expect_ok(qsf_ledger_reserve(&l, QSF_MEM_META, 400, "table", &e), &e);
    assert_int_equal(qsf_ledger_reserve(&l, QSF_MEM_KV, 1, "one more", &e), QSF_E_BUDGET);
    qsf_test_expect_err(&e, QSF_E_BUDGET, "one more");
    qsf_ledger_release(&l, QSF_MEM_KV, 500);
    qsf_err_clear(&e);
    assert_int_equal(qsf_ledger_reserve(&l, QSF_MEM_KV, UINT64_MAX, "overflow", &e), QSF_E_BUDGET);
    qsf_ledger_snapshot(&l, &snap);
    assert_int_equal(snap.used[QSF_MEM_KV], 100);
    assert_int_equal(snap.peak[QSF_MEM_KV], 600);
    assert_int_equal(snap.total, 500);
    assert_int_equal(snap.total_peak, 1000);
    qsf_ledger_set_limit(&l, 100); /* below what is in use: only new charges are refused */
    assert_int_equal(qsf_ledger_reserve(&l, QSF_MEM_KV, 1, "x", NULL), QSF_E_BUDGET);
    qsf_ledger_set_limit(&l, 0);
    assert_int_equal(qsf_ledger_reserve(&l, QSF_MEM_KV, 1u << 30, "x", NULL), QSF_OK);
    qsf_ledger_destroy(&l);
    for (int i = 0; i < QSF_MEM_N; i++) assert_non_null(qsf_mem_cat_name((QsfMemCat)i));
}

static void test_map(void **state) {
    QsfLedger l;
    QsfErr e = { 0 };
    void *p;
    (void)state;
    qsf_ledger_init(&l, (uint64_t)1 << 40);
    uint64_t before = qsf_rss_bytes();
    qsf_test_expect_ok(qsf_mem_map(&l, QSF_MEM_PINNED, 64 << 20, "weights", &p, &e), &e);
    assert_int_equal((uintptr_t)p % 4096, 0);
    assert_true(qsf_rss_bytes() < before + (16 << 20)); /* mapped, not touched */
    assert_int_equal(((char *)p)[(64 << 20) - 1], 0);
    assert_int_equal(l.used[QSF_MEM_PINNED], 64 << 20);
    qsf_mem_unmap(&l, QSF_MEM_PINNED, p, 64 << 20);
    assert_int_equal(l.total, 0);
    qsf_test_expect_ok(qsf_mem_map(&l, QSF_MEM_PINNED, 0, "nothing", &p, &e), &e);
    assert_null(p);
    assert_int_equal(qsf_mem_map(&l, QSF_MEM_PINNED, (uint64_t)1 << 41, "too much", &p, &e), QSF_E_BUDGET);
    assert_null(p);
    qsf_ledger_set_limit(&l, 0);
    qsf_err_clear(&e);
    assert_int_equal(qsf_mem_map(&l, QSF_MEM_PINNED, (uint64_t)1 << 62, "absurd", &p, &e), QSF_E_RUNTIME);
    assert_int_equal(l.total, 0);
    qsf_ledger_destroy(&l);
}

static void test_arena(void **state) {
    QsfLedger l;
    QsfArena a;
    QsfErr e = { 0 };
    (void)state;
    qsf_ledger_init(&l, 1 << 20);
    qsf_arena_init(&a, &l, QSF_MEM_META, "test arena", 1);
    assert_int_equal(l.total, 0);
    char *first = qsf_arena_alloc(&a, 10, 1, &e);
    for (size_t align = 1; align <= 4096; align *= 2) {
        char *p = qsf_arena_alloc(&a, 100, align, &e);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % align, 0);
        for (int i = 0; i < 100; i++) assert_int_equal(p[i], 0);
        memset(p, 0xAA, 100);
    }
    assert_non_null(qsf_arena_alloc(&a, 0, 1, &e));
    char *big = qsf_arena_alloc(&a, 100000, 64, &e);
    assert_non_null(big);
    memset(big, 1, 100000);
    assert_string_equal(qsf_arena_strdup(&a, "hello world", 5, &e), "hello");
    assert_int_equal(l.used[QSF_MEM_META], a.reserved);
    assert_null(qsf_arena_alloc(&a, 2 << 20, 8, &e));
    qsf_test_expect_err(&e, QSF_E_BUDGET, "test arena");
    qsf_err_clear(&e);
    assert_null(qsf_arena_alloc(&a, SIZE_MAX - 8, 8, &e));
    qsf_err_clear(&e);
    qsf_arena_freeze(&a, true);
    assert_null(qsf_arena_alloc(&a, 1, 1, &e));
    qsf_test_expect_err(&e, QSF_E_RUNTIME, "frozen");
    qsf_arena_freeze(&a, false);
    qsf_arena_reset(&a);
    assert_int_equal(l.used[QSF_MEM_META], a.reserved);
    first = qsf_arena_alloc(&a, 4000, 1, NULL);
    for (int i = 0; i < 4000; i++) assert_int_equal(first[i], 0);
    qsf_arena_destroy(&a);
    assert_int_equal(l.total, 0);
    qsf_ledger_destroy(&l);
}

static void test_clock(void **state) {
    (void)state;
    uint64_t t = qsf_now_ns();
    assert_true(qsf_now_ns() >= t);
    assert_true(qsf_rss_bytes() > 100000);
    assert_true(qsf_peak_rss_bytes() >= qsf_rss_bytes() / 2);
    assert_true(qsf_available_bytes() > 1 << 20);
    assert_in_range(qsf_cpu_count(), 1, 1 << 20);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_limit), cmocka_unit_test(test_map),
                                        cmocka_unit_test(test_arena), cmocka_unit_test(test_clock) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
