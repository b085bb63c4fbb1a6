/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Quantizing a tensor in pieces and groups of rows: for any row length, the bytes are those of its rows
 * quantized one by one, and all its outliers are counted. */
#include "tests/harness/source_rig.h"

#include "src/convert/pack/encode_rows.h"
#include "tests/harness/gguf_build.h"

enum { ROWS = 300, PER_ROW = 3 };

static char gguf[256];

/* Between -1 and 1, except for three values per row. */
static void write_matrix(uint64_t cols) {
    QsfGgufBuild b = { 0 };
    const uint64_t ne[2] = { cols, ROWS };
    float *v = malloc(cols * ROWS * sizeof *v);
    assert_non_null(v);
    for (uint64_t i = 0; i < cols * ROWS; i++) v[i] = (float)((int)(i * 7919 % 1999) - 999) / 1000.0f;
    for (uint64_t r = 0; r < ROWS; r++)
        for (uint64_t k = 0; k < PER_ROW; k++)
            v[r * cols + (r * 31 + k * 17) % cols] = k % 2 == 0 ? 50.0f : -50.0f;
    qsf_gb_str(&b, "general.architecture", "llama");
    qsf_gb_tensor(&b, "m.weight", 0, 2, ne, v, cols * ROWS * sizeof *v);
    assert_int_equal(qsf_gb_write(&b, gguf), 0);
    qsf_gb_free(&b);
    free(v);
}

typedef struct Bytes {
    uint8_t *b;
    size_t len;
} Bytes;

static int keep(void *arg, const void *data, size_t len, QsfErr *err) {
    Bytes *to = arg;
    (void)err;
    to->b = realloc(to->b, to->len + len);
    assert_non_null(to->b);
    memcpy(to->b + to->len, data, len);
    to->len += len;
    return QSF_OK;
}

static Bytes encode(QsfEncoder *e, QsfItem *i, const char *format) {
    Bytes out = { 0 };
    QsfErr err = { 0 };
    qsf_test_expect_ok(qsf_encode(e, i, qsf_quant_format_named(format), keep, &out, &err), &err);
    return out;
}

/* All rows together, and each row alone. */
static void check(uint64_t cols, const char *format, QsfQuantRule rule, int threads) {
    QsfSource *s = open_ok(gguf);
    QsfEncoder e;
    QsfPool *pool;
    QsfErr err = { 0 };
    QsfQuantStats some;
    qsf_test_expect_ok(qsf_pool_create(&pool, threads, &ledger, &err), &err);
    qsf_encoder_init(&e, s, pool, NULL, rule);
    e.block = 64;
    QsfItem whole = { .t = qsf_source_find_tensor(s, "m.weight"), .rows = ROWS, .cols = (uint32_t)cols },
            one = whole;
    Bytes all = encode(&e, &whole, format), rows = { 0 };
    assert_int_equal(whole.outliers, ROWS * PER_ROW);
    assert_int_equal(whole.clamped, rule == QSF_RULE_MINMAX ? ROWS * PER_ROW : 0);
    qsf_test_expect_ok(qsf_encode_sample(&e, &whole, qsf_quant_format_named(format), &some, &err), &err);
    one.rows = 1;
    for (one.first = 0; rule == QSF_RULE_SEARCH && one.first < ROWS;
         one.first++) { /* the limits are the whole tensor's */
        Bytes row = encode(&e, &one, format);
        assert_int_equal(keep(&rows, row.b, row.len, &err), QSF_OK);
        free(row.b);
    }
    if (rule == QSF_RULE_SEARCH) {
        assert_int_equal(rows.len, all.len);
        assert_memory_equal(rows.b, all.b, all.len);
    }
    free(rows.b);
    free(all.b);
    qsf_encoder_free(&e);
    qsf_pool_destroy(pool);
    qsf_source_close(s);
}

/* 5,632 and 11,008 are the feed-forward widths of known models; rows around half a group and a whole one. */
static void test_lengths(void **state) {
    (void)state;
    static const uint64_t cols[] = { 4096, 5632, 8192, 8256, 11008, 16384, 16448 };
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
        write_matrix(cols[i]);
        check(cols[i], "4bit", QSF_RULE_MINMAX, i % 2 == 0 ? 1 : 3);
        if (cols[i] == 5632 || cols[i] == 8256) check(cols[i], "2bit-asym", QSF_RULE_SEARCH, 3);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_lengths) };
    (void)snprintf(gguf, sizeof gguf, "%s", qsf_test_tmp("encode.gguf"));
    qsf_ledger_init(&ledger, 0);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(gguf);
    qsf_ledger_destroy(&ledger);
    return rc;
}
