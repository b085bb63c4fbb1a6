/* SPDX-License-Identifier: GPL-3.0-or-later */
/* KV cache: every (layer, head, position) has its own row, sizes are charged, truncation forgets. */
#include "src/forward/kvcache.h"
#include "tests/harness/qsf_test.h"

enum { LAYERS = 3, HEADS = 2, DIM = 10, CTX = 7 };

static const QsfHparams hp = {.n_layers = LAYERS, .n_kv_heads = HEADS, .head_dim = DIM};

/* A number that f16 holds exactly and no other place shares. */
static float value(uint32_t layer, uint32_t pos, unsigned which, size_t i) {
    return (float)(layer * 512 + pos * 64 + which * 32 + i);
}

static void fill(QsfKvCache *c) {
    float k[HEADS * DIM], v[HEADS * DIM];
    for (uint32_t l = 0; l < LAYERS; l++) {
        for (uint32_t p = 0; p < CTX; p++) {
            for (size_t i = 0; i < HEADS * DIM; i++) {
                k[i] = value(l, p, 0, i);
                v[i] = value(l, p, 1, i);
            }
            qsf_kvcache_store(c, l, p, k, v);
        }
    }
}

static float element(const QsfKvCache *c, const uint8_t *row, size_t i) {
    if (c->row == DIM * sizeof(float)) {
        float x;
        memcpy(&x, row + i * sizeof x, sizeof x);
        return x;
    }
    uint16_t h;
    memcpy(&h, row + i * sizeof h, sizeof h);
    return qk_f16_to_f32(h);
}

static void check_rows(const QsfKvCache *c) {
    for (uint32_t l = 0; l < LAYERS; l++) {
        for (uint32_t p = 0; p < CTX; p++) {
            for (size_t i = 0; i < HEADS * DIM; i++) {
                uint32_t h = (uint32_t)(i / DIM);
                assert_true(element(c, qsf_kvcache_k(c, l, h) + p * c->row, i % DIM) == value(l, p, 0, i));
                assert_true(element(c, qsf_kvcache_v(c, l, h) + p * c->row, i % DIM) == value(l, p, 1, i));
            }
        }
    }
}

static void test_rows(void **state) {
    (void)state;
    qk_table t;
    qk_table_init(&t, qk_cpu_best());
    for (int kind = 0; kind < QK_KV_N; kind++) {
        QsfLedger ledger;
        QsfKvCache c;
        QsfErr err = {0};
        qsf_ledger_init(&ledger, 0);
        qsf_test_expect_ok(qsf_kvcache_init(&c, &hp, &t.kv[kind], CTX, &ledger, &err), &err);
        assert_int_equal(c.row, t.kv[kind].row_bytes(DIM));
        assert_true(ledger.used[QSF_MEM_KV] >= 2ull * LAYERS * HEADS * CTX * c.row);
        fill(&c);
        check_rows(&c);
        qsf_kvcache_free(&c);
        assert_int_equal(ledger.total, 0);
        qsf_ledger_destroy(&ledger);
    }
}

static void test_truncate(void **state) {
    (void)state;
    QsfKvCache c = {.n_past = 5};
    qsf_kvcache_truncate(&c, 9);
    assert_int_equal(c.n_past, 5);
    qsf_kvcache_truncate(&c, 2);
    assert_int_equal(c.n_past, 2);
    qsf_kvcache_truncate(&c, 0);
    assert_int_equal(c.n_past, 0);
    qsf_kvcache_free(&c);
}

static void test_budget(void **state) {
    (void)state;
    qk_table t;
    QsfLedger ledger;
    QsfKvCache c;
    QsfErr err = {0};
    qk_table_init(&t, QK_LEVEL_REF);
    qsf_ledger_init(&ledger, 100);
    assert_int_equal(qsf_kvcache_init(&c, &hp, &t.kv[QK_KV_F16], CTX, &ledger, &err), QSF_E_BUDGET);
    qsf_test_expect_err(&err, QSF_E_BUDGET, "KV cache");
    qsf_kvcache_free(&c);
    assert_int_equal(ledger.total, 0);
    qsf_ledger_destroy(&ledger);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_truncate),
        cmocka_unit_test(test_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
