/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The RAM ledger, mapped memory and the arena on top of them. */
#include "tests/harness/qsf_test.h"

#include "src/base/arena.h"
#include "src/base/clock.h"
#include "src/base/cpus.h"
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
    assert_int_equal((uintptr_t)first % 64, 0);
    assert_int_equal((uintptr_t)qsf_arena_alloc(&a, 3, 0, &e) % 64, 0);
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
    first = qsf_arena_alloc(&a, 4000, 1, NULL);
    for (int i = 0; i < 4000; i++) assert_int_equal(first[i], 0);
    qsf_arena_destroy(&a);
    assert_int_equal(l.total, 0);
    qsf_ledger_destroy(&l);
}

/* --- regions --- */

static const QsfRegion *region(QsfLedger *l, const char *name) {
    static QsfLedger now;
    qsf_ledger_snapshot(l, &now);
    for (uint32_t i = 0; i < now.n_regions; i++) {
        if (now.region[i].count > 0 && strcmp(now.region[i].name, name) == 0) return &now.region[i];
    }
    return NULL;
}

static void expect_region(QsfLedger *l, const char *name, uint32_t count, uint64_t bytes) {
    const QsfRegion *r = region(l, name);
    if (r == NULL) fail_msg("no region %s", name);
    if (r->count != count || r->bytes != bytes)
        fail_msg("%s: %u mappings of %llu bytes", name, (unsigned)r->count, (unsigned long long)r->bytes);
}

static void *map(QsfLedger *l, QsfMemCat cat, uint64_t bytes, const char *what) {
    QsfErr e = { 0 };
    void *p;
    qsf_test_expect_ok(qsf_mem_map(l, cat, bytes, what, &p, &e), &e);
    return p;
}

static void test_regions(void **state) {
    QsfLedger l;
    QsfErr e = { 0 };
    (void)state;
    qsf_ledger_init(&l, 0);
    void *norm = map(&l, QSF_MEM_PINNED, 4096, "norms");
    void *one = map(&l, QSF_MEM_PINNED, 8192, "weights"), *two = map(&l, QSF_MEM_PINNED, 4096, "weights");
    void *three = map(&l, QSF_MEM_PINNED, 4096, "weights"), *table = map(&l, QSF_MEM_META, 4096, "table");
    expect_region(&l, "weights", 3, 16384);
    expect_region(&l, "norms", 1, 4096);
    qsf_test_expect_ok(qsf_mem_resize(&l, QSF_MEM_PINNED, 8192, 1 << 20, "weights", &one, &e), &e);
    expect_region(&l, "weights", 3, (1 << 20) + 8192);
    qsf_test_expect_ok(qsf_mem_resize(&l, QSF_MEM_PINNED, 1 << 20, 4096, "weights", &one, &e), &e);
    expect_region(&l, "weights", 3, 3 * 4096);
    qsf_test_expect_ok(qsf_mem_resize(&l, QSF_MEM_PINNED, 4096, 0, "weights", &one, &e), &e);
    assert_null(one);
    expect_region(&l, "weights", 2, 2 * 4096);
    qsf_mem_unmap(&l, QSF_MEM_PINNED, norm, 4096); /* found by its address */
    assert_null(region(&l, "norms"));
    expect_region(&l, "weights", 2, 2 * 4096);
    qsf_mem_unmap(&l, QSF_MEM_PINNED, two, 4096);
    qsf_mem_unmap_named(&l, QSF_MEM_PINNED, three, 4096, "weights");
    assert_null(region(&l, "weights"));
    expect_region(&l, "table", 1, 4096);
    qsf_mem_unmap(&l, QSF_MEM_META, table, 4096);
    assert_int_equal(l.total, 0);
    qsf_ledger_destroy(&l);
}

/* More names than the table has lines: the sum is correct, and lines are reused. */
static void test_many_regions(void **state) {
    static char name[2 * QSF_LEDGER_REGIONS][16];
    void *p[2 * QSF_LEDGER_REGIONS];
    QsfLedger l;
    (void)state;
    qsf_ledger_init(&l, 0);
    for (int round = 0; round < 2; round++) {
        uint64_t sum = 0;
        for (int i = 0; i < 2 * QSF_LEDGER_REGIONS; i++) {
            snprintf(name[i], sizeof name[i], "region %d", i + round);
            p[i] = map(&l, QSF_MEM_META, 4096, name[i]);
        }
        assert_int_equal(l.n_regions, QSF_LEDGER_REGIONS);
        for (uint32_t i = 0; i < l.n_regions; i++) sum += l.region[i].bytes;
        assert_int_equal(sum, 2 * QSF_LEDGER_REGIONS * 4096);
        expect_region(&l, "others", QSF_LEDGER_REGIONS + 1, (QSF_LEDGER_REGIONS + 1) * 4096);
        for (int i = 0; i < 2 * QSF_LEDGER_REGIONS; i++)
            qsf_mem_unmap_named(&l, QSF_MEM_META, p[i], 4096, name[i]);
        for (uint32_t i = 0; i < l.n_regions; i++) assert_int_equal(l.region[i].count, 0);
    }
    qsf_ledger_destroy(&l);
}

static void test_freeze(void **state) {
    QsfLedger l;
    QsfArena a;
    QsfErr e = { 0 };
    void *p = NULL, *kept;
    (void)state;
    qsf_ledger_init(&l, 1 << 20);
    qsf_arena_init(&a, &l, QSF_MEM_META, "an arena", 4096);
    kept = map(&l, QSF_MEM_KV, 8192, "cache");
    qsf_ledger_freeze(&l);
    qsf_ledger_freeze(&l);
    assert_int_equal(qsf_ledger_reserve(&l, QSF_MEM_KV, 1, "one byte", &e), QSF_E_RUNTIME);
    qsf_test_expect_err(&e, QSF_E_RUNTIME, "one byte");
    qsf_err_clear(&e);
    qsf_ledger_thaw(&l);
    assert_int_equal(qsf_mem_map(&l, QSF_MEM_KV, 4096, "page", &p, &e), QSF_E_RUNTIME);
    qsf_test_expect_err(&e, QSF_E_RUNTIME, "frozen");
    assert_null(p);
    assert_null(qsf_arena_alloc(&a, 1, 1, NULL));
    assert_int_equal(qsf_mem_resize(&l, QSF_MEM_KV, 8192, 16384, "cache", &kept, NULL), QSF_E_RUNTIME);
    assert_int_equal(qsf_mem_resize(&l, QSF_MEM_KV, 8192, 4096, "cache", &kept, NULL),
                     QSF_OK); /* giving memory back is allowed */
    assert_int_equal(l.used[QSF_MEM_KV], 4096);
    assert_int_equal(l.refused_frozen, 4);
    qsf_ledger_thaw(&l);
    qsf_ledger_thaw(&l); /* one too many */
    assert_non_null(qsf_arena_alloc(&a, 1, 1, NULL));
    expect_region(&l, "an arena", 1, a.reserved);
    assert_non_null(qsf_arena_alloc(&a, 100000, 1, NULL));
    expect_region(&l, "an arena", 2, a.reserved);
    qsf_arena_destroy(&a);
    assert_null(region(&l, "an arena"));
    qsf_mem_unmap(&l, QSF_MEM_KV, kept, 4096);
    assert_int_equal(l.total, 0);
    qsf_ledger_destroy(&l);
}

static void test_resize(void **state) {
    QsfLedger l;
    QsfErr e = { 0 };
    void *p = NULL;
    (void)state;
    qsf_ledger_init(&l, 1 << 20);
    qsf_test_expect_ok(qsf_mem_resize(&l, QSF_MEM_KV, 0, 8192, "cache", &p, &e), &e);
    memset(p, 7, 8192);
    qsf_test_expect_ok(qsf_mem_resize(&l, QSF_MEM_KV, 8192, 65536, "cache", &p, &e), &e);
    assert_true(((char *)p)[8191] == 7 && ((char *)p)[8192] == 0);
    void *before = p;
    assert_int_equal(qsf_mem_resize(&l, QSF_MEM_KV, 65536, 2 << 20, "cache", &p, &e), QSF_E_BUDGET);
    qsf_err_clear(&e);
    qsf_mem_inject_failure(1);
    assert_int_equal(qsf_mem_resize(&l, QSF_MEM_KV, 65536, 131072, "cache", &p, &e), QSF_E_RUNTIME);
    qsf_test_expect_err(&e, QSF_E_RUNTIME, "out of memory: cache");
    assert_ptr_equal(p, before);
    expect_region(&l, "cache", 1, 65536);
    assert_int_equal(l.used[QSF_MEM_KV], 65536);
    qsf_err_clear(&e);
    qsf_mem_inject_failure(2);
    void *q = map(&l, QSF_MEM_KV, 4096, "first");
    assert_int_equal(qsf_mem_map(&l, QSF_MEM_KV, 4096, "second", &before, &e), QSF_E_RUNTIME);
    assert_null(region(&l, "second"));
    qsf_mem_unmap(&l, QSF_MEM_KV, q, 4096);
    qsf_mem_unmap(&l, QSF_MEM_KV, p, 65536);
    assert_int_equal(l.total, 0);
    qsf_ledger_destroy(&l);
}

static void test_text(void **state) {
    QsfLedger l;
    (void)state;
    qsf_ledger_init(&l, 64 << 20);
    void *p = map(&l, QSF_MEM_KV, 3 << 20, "the cache"), *q = map(&l, QSF_MEM_PINNED, 1 << 20, "rows");
    qsf_mem_unmap(&l, QSF_MEM_PINNED, q, 1 << 20);
    char *text = qsf_ledger_text(&l);
    assert_non_null(text);
    for (int i = 0; i < QSF_MEM_N; i++) assert_non_null(strstr(text, qsf_mem_cat_name((QsfMemCat)i)));
    assert_non_null(strstr(text, "the cache                        3.00 MB   in KV cache\n"));
    assert_null(strstr(text, "rows"));
    assert_non_null(strstr(text, "sum                                3.00 MB   peak       4.00 MB\n"));
    assert_non_null(strstr(text, "budget                            64.00 MB\n"));
    assert_int_equal(text[strlen(text) - 1], '\n');
    free(text);
    qsf_mem_unmap(&l, QSF_MEM_KV, p, 3 << 20);
    qsf_ledger_destroy(&l);
}

static void test_clock(void **state) {
    (void)state;
    uint64_t t = qsf_now_ns();
    assert_true(qsf_now_ns() >= t);
    assert_true(qsf_rss_bytes() > 100000);
    assert_true(qsf_peak_rss_bytes() >= qsf_rss_bytes() / 2);
    assert_true(qsf_peak_rss_bytes() >= qsf_recent_peak_rss_bytes());
    assert_true(qsf_available_bytes() > 1 << 20);
    assert_in_range(qsf_cpu_count(), 1, 1 << 20);
}

/* A reset hides nothing: what was resident before it is still the peak. */
static void test_peak(void **state) {
    (void)state;
    const size_t bytes = 64u << 20;
    QsfLedger l;
    QsfErr err = { 0 };
    void *p;
    qsf_ledger_init(&l, 0);
    assert_int_equal(qsf_mem_map(&l, QSF_MEM_KV, bytes, "peak", &p, &err), QSF_OK);
    memset(p, 1, bytes);
    const uint64_t high = qsf_peak_rss_bytes();
    qsf_mem_unmap(&l, QSF_MEM_KV, p, bytes);
    qsf_ledger_destroy(&l);
    if (!qsf_peak_rss_reset()) {
        printf("skip: this kernel does not reset the peak\n");
        skip();
    }
    assert_true(qsf_recent_peak_rss_bytes() + bytes / 2 < high);
    assert_true(qsf_peak_rss_bytes() + (1u << 20) >= high); /* the kernel counts some pages late */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit),        cmocka_unit_test(test_map),    cmocka_unit_test(test_arena),
        cmocka_unit_test(test_regions),      cmocka_unit_test(test_freeze), cmocka_unit_test(test_resize),
        cmocka_unit_test(test_many_regions), cmocka_unit_test(test_text),   cmocka_unit_test(test_clock),
        cmocka_unit_test(test_peak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
