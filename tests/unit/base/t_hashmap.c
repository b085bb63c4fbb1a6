/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Byte string -> id. */
#include "tests/harness/qsf_test.h"

#include "src/base/hashmap.h"

enum { N = 100000 };

typedef struct Keys {
    char text[N][12];
} Keys;

static const char *key_of(const void *owner, int32_t id, size_t *len) {
    const Keys *k = owner;
    *len = strlen(k->text[id]);
    return k->text[id];
}

static void test_many(void **state) {
    QsfLedger l;
    QsfArena a;
    QsfHashmap m;
    QsfErr e = { 0 };
    Keys *k = malloc(sizeof *k);
    (void)state;
    assert_non_null(k);
    qsf_ledger_init(&l, 0);
    qsf_arena_init(&a, &l, QSF_MEM_META, "map", 0);
    for (int i = 0; i < N; i++) snprintf(k->text[i], sizeof k->text[i], "k%d", i % (N - 10));
    qsf_test_expect_ok(qsf_hashmap_init(&m, &a, N, key_of, k, &e), &e);
    assert_true(m.n_slots * sizeof(int32_t) <= 1100000);
    const uint64_t start = qsf_test_cpu_ns();
    for (int32_t i = 0; i < N; i++) assert_int_equal(qsf_hashmap_put(&m, i), i % (N - 10));
    for (int32_t i = 0; i < N - 10; i++)
        assert_int_equal(qsf_hashmap_get(&m, k->text[i], strlen(k->text[i])), i);
    assert_true(qsf_test_cpu_ns() - start < 20000000000u);
    assert_int_equal(m.n, N - 10);
    assert_int_equal(qsf_hashmap_get(&m, "absent", 6), -1);
    assert_int_equal(qsf_hashmap_get(&m, "", 0), -1);
    qsf_arena_destroy(&a);
    assert_int_equal(l.total, 0);
    qsf_ledger_destroy(&l);
    free(k);
}

/* Every key is a prefix of the others: in a full table, probes meet keys that differ only in length. */
static const char *prefix_of(const void *owner, int32_t id, size_t *len) {
    *len = (size_t)id;
    return owner;
}

static void test_prefixes(void **state) {
    static const char zeros[190];
    QsfLedger l;
    QsfArena a;
    QsfHashmap m;
    QsfErr e = { 0 };
    (void)state;
    qsf_ledger_init(&l, 0);
    qsf_arena_init(&a, &l, QSF_MEM_META, "map", 0);
    qsf_test_expect_ok(qsf_hashmap_init(&m, &a, 190, prefix_of, zeros, &e), &e);
    for (int32_t i = 0; i < 190; i++) assert_int_equal(qsf_hashmap_put(&m, i), i);
    for (int32_t i = 0; i < 190; i++) assert_int_equal(qsf_hashmap_get(&m, zeros, (size_t)i), i);
    qsf_arena_destroy(&a);
    qsf_ledger_destroy(&l);
}

static void test_empty(void **state) {
    QsfLedger l;
    QsfArena a;
    QsfHashmap m;
    QsfErr e = { 0 };
    (void)state;
    qsf_ledger_init(&l, 4096);
    qsf_arena_init(&a, &l, QSF_MEM_META, "map", 0);
    assert_int_equal(qsf_hashmap_init(&m, &a, 1000, key_of, NULL, &e), QSF_E_BUDGET);
    qsf_err_clear(&e);
    qsf_ledger_set_limit(&l, 0);
    qsf_test_expect_ok(qsf_hashmap_init(&m, &a, 0, key_of, NULL, &e), &e);
    assert_int_equal(qsf_hashmap_get(&m, "x", 1), -1);
    assert_int_equal(qsf_hashmap_init(&m, &a, UINT32_MAX, key_of, NULL, &e), QSF_E_RUNTIME);
    qsf_arena_destroy(&a);
    qsf_ledger_destroy(&l);
    assert_true(qsf_hash_bytes("abc", 3) != qsf_hash_bytes("abd", 3));
    assert_true(qsf_hash_bytes("abcdefgh\0", 9) != qsf_hash_bytes("abcdefgh", 8));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_many), cmocka_unit_test(test_prefixes),
                                        cmocka_unit_test(test_empty) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
