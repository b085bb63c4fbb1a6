/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The layouts of I2_S tensors: detected by size and name, chosen by the user, refused with the sizes found. */
#include "tests/harness/qsf_test.h"

#include "src/format/dtype.h"
#include "src/format/i2s.h"
#include "tests/harness/gguf_build.h"

enum { COLS = 256, ROWS = 16, MICROSOFT = 1056, WITH_HALVES = 1280, BARE = 1024 };

static QsfLedger ledger;

/* A file with one I2_S tensor of so many bytes between two others, the first of them with the given name. */
static int open_i2s(QsfSource **s, size_t bytes, const char *first, uint32_t alignment, QsfErr *e) {
    static unsigned char data[2048];
    static const float scale = 0.75f;
    const uint64_t ne[2] = { COLS, ROWS }, few[1] = { 8 };
    QsfGgufBuild b = { .alignment = alignment };
    const char *path = qsf_test_tmp("i2s.gguf");
    memset(data, 0, sizeof data);
    if (bytes == MICROSOFT) memcpy(data + BARE, &scale, sizeof scale);
    if (alignment != 0) qsf_gb_u32(&b, "general.alignment", alignment);
    qsf_gb_str(&b, "general.architecture", "llama");
    qsf_gb_tensor(&b, first, QK_GGML_F32, 1, few, data, 32);
    qsf_gb_tensor(&b, "blk.0.attn_q.weight", QK_GGML_I2_S, 2, ne, data, bytes);
    qsf_gb_tensor(&b, "last", QK_GGML_F32, 1, few, data, 32);
    assert_int_equal(qsf_gb_write(&b, path), 0);
    qsf_gb_free(&b);
    qsf_err_clear(e);
    const int rc = qsf_source_open(s, path, &ledger, e);
    unlink(path);
    return rc;
}

static void expect_type(size_t bytes, const char *first, uint32_t alignment, uint32_t dtype, uint64_t used) {
    QsfErr e = { 0 };
    QsfSource *s;
    qsf_test_expect_ok(open_i2s(&s, bytes, first, alignment, &e), &e);
    const QsfTensor *t = qsf_source_find_tensor(s, "blk.0.attn_q.weight");
    assert_non_null(t);
    assert_int_equal(t->dtype, dtype);
    assert_int_equal(t->bytes, used);
    assert_true(t->scale == (dtype == QK_GGML_I2_S ? 0.75f : 1.0f));
    qsf_source_close(s);
}

static void test_sizes(void **state) {
    (void)state;
    expect_type(MICROSOFT, "first", 0, QK_GGML_I2_S, MICROSOFT);
    expect_type(WITH_HALVES, "first", 0, QK_GGML_I2_32, WITH_HALVES);
    expect_type(BARE, "first", 0, QK_GGML_I2_256, BARE);
    /* the gap to the next tensor is not part of it */
    expect_type(MICROSOFT, "first", 128, QK_GGML_I2_S, MICROSOFT);
    expect_type(BARE, "first", 128, QK_GGML_I2_256, BARE);
}

static void test_split(void **state) {
    (void)state;
    static const char *const names[] = { "blk.0.attn_q.scale", "blk.0.attn_q_scale",
                                         "blk.0.attn_q.weight.scale", "blk.0.attn_q.weight_scale",
                                         "blk.0.attn_q.scales" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        expect_type(BARE, names[i], 0, QSF_DTYPE_I2_SPLIT, BARE);
    expect_type(BARE, "blk.0.attn_k.scale", 0, QK_GGML_I2_256, BARE);
    expect_type(MICROSOFT, "blk.0.attn_q.scale", 0, QK_GGML_I2_S, MICROSOFT);
    assert_false(qsf_dtype(QSF_DTYPE_I2_SPLIT)->supported);
}

static void test_refused(void **state) {
    (void)state;
    static const size_t wrong[] = { 992, 1088, 1248, 1312 };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        QsfErr e = { 0 };
        QsfSource *s;
        char found[32];
        assert_int_equal(open_i2s(&s, wrong[i], "first", 0, &e), QSF_E_MODEL);
        qsf_test_expect_err(&e, QSF_E_MODEL,
                            "1056 (microsoft), 1280 (bitnet32f16), 1024 (split32), 1024 (qk256)");
        snprintf(found, sizeof found, "has %zu bytes", wrong[i]);
        qsf_test_expect_err(&e, QSF_E_MODEL, found);
    }
}

static void test_chosen(void **state) {
    (void)state;
    QsfErr e = { 0 };
    QsfSource *s;
    qsf_test_expect_ok(open_i2s(&s, BARE, "blk.0.attn_q.scale", 0, &e), &e);
    const QsfTensor *t = qsf_source_find_tensor(s, "blk.0.attn_q.weight");
    const size_t entries = qsf_meta_count(s);
    qsf_test_expect_ok(qsf_source_override(s, QSF_I2S_KEY "=str:qk256", &e), &e);
    assert_int_equal(t->dtype, QK_GGML_I2_256);
    assert_int_equal(qsf_meta_count(s), entries);
    qsf_test_expect_ok(qsf_source_override(s, QSF_I2S_KEY "=str:split32", &e), &e);
    assert_int_equal(t->dtype, QSF_DTYPE_I2_SPLIT);
    assert_int_equal(qsf_source_override(s, QSF_I2S_KEY "=str:bitnet32f16", &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "not the size for --i2s-flavor");
    qsf_err_clear(&e);
    assert_int_equal(qsf_source_override(s, QSF_I2S_KEY "=str:other", &e), QSF_E_USAGE);
    qsf_test_expect_err(&e, QSF_E_USAGE, "microsoft, bitnet32f16, split32 or qk256");
    qsf_err_clear(&e);
    assert_int_equal(qsf_source_override(s, QSF_I2S_KEY "=null", &e), QSF_E_USAGE);
    qsf_source_close(s);
    assert_int_equal(ledger.total, 0);
}

static int setup(void **state) {
    (void)state;
    qsf_ledger_init(&ledger, 0);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_chosen),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
