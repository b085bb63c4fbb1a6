/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Address space: parts grow and shrink in place, exactly the charged part is accessible, and memory is given
 * back. */
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/space.h"
#include "tests/harness/qsf_test.h"

#define PARTS      24
#define PAGE       qsf_page_bytes()
#define PART_BYTES (700u * PAGE) /* not a multiple of a huge page: neighbours share them */
#define LATE       (4u << 20)    /* some kernels count some pages of each CPU late */

typedef struct Bench {
    QsfLedger ledger;
    QsfSpace space;
    uint64_t bytes[PARTS];
} Bench;

static void open_bench(Bench *b) {
    QsfErr err = { 0 };
    memset(b, 0, sizeof *b);
    qsf_ledger_init(&b->ledger, 0);
    qsf_test_expect_ok(qsf_space_open(&b->space, (uint64_t)PARTS * PART_BYTES, "parts", &err), &err);
    assert_int_equal((uintptr_t)b->space.base % (2u << 20), 0);
    assert_int_equal(b->ledger.total, 0);
}

static int resize(Bench *b, unsigned i, uint64_t bytes, QsfErr *err) {
    uint8_t *const place = b->space.base + (uint64_t)i * PART_BYTES, *p = place;
    int rc = qsf_space_resize(&b->ledger, QSF_MEM_PINNED, "part", &p, b->bytes[i], bytes, err);
    assert_ptr_equal(p, place);
    if (rc == QSF_OK) b->bytes[i] = bytes;
    return rc;
}

static void set_all(Bench *b, uint64_t bytes) {
    QsfErr err = { 0 };
    for (unsigned i = 0; i < PARTS; i++) qsf_test_expect_ok(resize(b, i, bytes, &err), &err);
}

static void close_bench(Bench *b) {
    set_all(b, 0);
    assert_int_equal(b->ledger.total, 0);
    assert_int_equal(b->ledger.region[0].count, 0);
    qsf_space_close(&b->space);
    qsf_ledger_destroy(&b->ledger);
}

static uint8_t *page(const Bench *b, unsigned i, uint64_t at) {
    return b->space.base + (uint64_t)i * PART_BYTES + at;
}

/* Random sizes: old contents are kept, new memory is zero, the ledger holds the sum. */
static void test_contents(void **state) {
    (void)state;
    Bench b;
    QsfErr err = { 0 };
    uint32_t x = 1;
    open_bench(&b);
    for (unsigned step = 0; step < 600; step++) {
        x = x * 1664525u + 1013904223u;
        unsigned i = (x >> 8) % PARTS;
        uint64_t old = b.bytes[i], want = (x >> 13) % (PART_BYTES / PAGE + 1) * PAGE, sum = 0;
        qsf_test_expect_ok(resize(&b, i, want, &err), &err);
        for (uint64_t at = 0; at < want; at += PAGE) {
            assert_int_equal(*page(&b, i, at), at < old ? 1 + i : 0);
            *page(&b, i, at) = (uint8_t)(1 + i);
        }
        for (unsigned k = 0; k < PARTS; k++) sum += b.bytes[k];
        assert_int_equal(b.ledger.used[QSF_MEM_PINNED], sum);
        assert_int_equal(b.ledger.region[0].bytes, sum);
    }
    close_bench(&b);
}

/* Released memory leaves the resident set, also in the middle of huge pages. */
static void test_returns(void **state) {
    (void)state;
    Bench b;
    const char *san = getenv("QSF_SAN");
    if (san != NULL && strcmp(san, "yes") == 0) skip();
    open_bench(&b);
    uint64_t none = qsf_rss_bytes();
    set_all(&b, PART_BYTES);
    memset(b.space.base, 1, (size_t)PARTS * PART_BYTES);
    uint64_t full = qsf_rss_bytes();
    assert_true(full >= none + (uint64_t)PARTS * PART_BYTES * 95 / 100);
    set_all(&b, PART_BYTES / 4 / PAGE * PAGE);
    assert_true(qsf_rss_bytes() <= none + b.ledger.total + LATE);
    set_all(&b, 0);
    assert_true(qsf_rss_bytes() <= none + LATE);
    close_bench(&b);
}

/* Nothing changes when the budget or the machine has no memory left. */
static void test_refused(void **state) {
    (void)state;
    Bench b;
    QsfErr err = { 0 };
    open_bench(&b);
    qsf_test_expect_ok(resize(&b, 0, PAGE, &err), &err);
    qsf_ledger_set_limit(&b.ledger, 3 * PAGE);
    assert_int_equal(resize(&b, 0, 4 * PAGE, &err), QSF_E_BUDGET);
    qsf_test_expect_err(&err, QSF_E_BUDGET, "part");
    qsf_err_clear(&err);
    qsf_mem_inject_failure(1);
    assert_int_equal(resize(&b, 1, PAGE, &err), QSF_E_RUNTIME);
    qsf_mem_inject_failure(1);
    qsf_err_clear(&err);
    qsf_test_expect_ok(resize(&b, 0, 0, &err), &err); /* shrinking cannot fail */
    qsf_mem_inject_failure(0);
    assert_int_equal(b.ledger.total, 0);
    QsfSpace s;
    assert_int_equal(qsf_space_open(&s, UINT64_MAX / 2 + 1, "everything", &err), QSF_E_RUNTIME);
    assert_null(s.base);
    qsf_space_close(&s);
    qsf_err_clear(&err);
    qsf_test_expect_ok(qsf_space_open(&s, 0, "nothing", &err), &err);
    qsf_space_close(&s);
    close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_contents), cmocka_unit_test(test_returns),
                                        cmocka_unit_test(test_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
