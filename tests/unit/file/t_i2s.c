/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The layouts of I2_S tensors: detected by size and name, chosen by the user, refused with the
 * sizes found. */
#include "tests/harness/qsf_test.h"

#include <math.h>

#include "src/base/half.h"
#include "src/file/dtype.h"
#include "src/file/i2s.h"
#include "src/file/rows.h"
#include "tests/harness/gguf_build.h"

enum { COLS = 256, ROWS = 16, MICROSOFT = 1056, WITH_HALVES = 1280, BARE = 1024, SCALES = COLS * ROWS / 32 };

static QsfLedger ledger;

static float scale_of(size_t i) { return (float)(i + 1) / 64; }

/* A file with one I2_S tensor of the given size between two others, the first of them with the given name. */
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

/* A file with a split32 tensor, whose scales have this name, type and number. */
static int open_split(QsfSource **s, const char *scales, uint32_t dtype, uint64_t n, float first, QsfErr *e) {
    static unsigned char codes[BARE], raw[4 * (SCALES + 1)];
    const uint64_t ne[2] = { COLS, ROWS };
    QsfGgufBuild b = { 0 };
    const char *path = qsf_test_tmp("i2s.gguf");
    for (size_t i = 0; i < sizeof codes; i++) codes[i] = (unsigned char)(i * 37);
    for (size_t i = 0; i < n; i++) {
        const float x = i == 0 ? first : scale_of(i);
        if (dtype == QK_GGML_F16)
            qsf_half_put(raw + 2 * i, qsf_half_bits((double)x));
        else
            memcpy(raw + 4 * i, &x, sizeof x);
    }
    qsf_gb_str(&b, "general.architecture", "llama");
    qsf_gb_tensor(&b, "blk.0.attn_q.weight", QK_GGML_I2_S, 2, ne, codes, sizeof codes);
    qsf_gb_tensor(&b, scales, dtype, 1, &n, raw, n * (dtype == QK_GGML_F16 ? 2 : 4));
    qsf_gb_tensor(&b, "last", QK_GGML_F32, 1, &n, raw, 4 * n);
    assert_int_equal(qsf_gb_write(&b, path), 0);
    qsf_gb_free(&b);
    qsf_err_clear(e);
    const int rc = qsf_source_open(s, path, &ledger, e);
    unlink(path);
    return rc;
}

/* Blocks of bitnet32f16, whole and in any range. */
static void expect_joined(const QsfSource *s) {
    QsfErr e = { 0 };
    unsigned char want[WITH_HALVES], got[WITH_HALVES];
    const QsfTensor *t = qsf_source_find_tensor(s, "blk.0.attn_q.weight");
    assert_non_null(t);
    assert_int_equal(t->dtype, QK_GGML_I2_32);
    assert_int_equal(t->bytes, WITH_HALVES);
    for (size_t i = 0; i < SCALES; i++) {
        for (size_t j = 0; j < 8; j++) want[10 * i + j] = (unsigned char)((8 * i + j) * 37);
        qsf_half_put(want + 10 * i + 8, qsf_half_bits((double)scale_of(i)));
    }
    for (size_t at = 0; at < WITH_HALVES; at += 13)
        for (size_t len = 1; len <= WITH_HALVES - at; len += 111) {
            memset(got, 0, sizeof got);
            qsf_test_expect_ok(qsf_source_read_bytes(s, t, at, got, len, &e), &e);
            assert_memory_equal(got, want + at, len);
        }
}

static void test_split(void **state) {
    (void)state;
    static const char *const names[] = { "blk.0.attn_q.scale", "blk.0.attn_q_scale",
                                         "blk.0.attn_q.weight.scale", "blk.0.attn_q.weight_scale",
                                         "blk.0.attn_q.scales" };
    QsfErr e = { 0 };
    QsfSource *s;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        qsf_test_expect_ok(
            open_split(&s, names[i], i % 2 ? QK_GGML_F16 : QK_GGML_F32, SCALES, scale_of(0), &e), &e);
        expect_joined(s);
        assert_int_equal(qsf_source_n_tensors(s), 2); /* the scales are part of the other */
        assert_null(qsf_source_find_tensor(s, names[i]));
        assert_non_null(qsf_source_find_tensor(s, "last"));
        qsf_source_close(s);
    }
    expect_type(BARE, "blk.0.attn_k.scale", 0, QK_GGML_I2_256, BARE);
    expect_type(MICROSOFT, "blk.0.attn_q.scale", 0, QK_GGML_I2_S, MICROSOFT);
}

static void test_split_refused(void **state) {
    (void)state;
    const char *name = "blk.0.attn_q.scale";
    QsfErr e = { 0 };
    QsfSource *s;
    assert_int_equal(open_split(&s, name, QK_GGML_F32, SCALES - 1, 1, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL,
                        "'blk.0.attn_q.scale' has 127 elements, expected 128, a scale for each block of 32 "
                        "elements of 'blk.0.attn_q.weight' (256 x 16)");
    assert_int_equal(open_split(&s, name, QK_GGML_F16, SCALES + 1, 1, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "has 129 elements, expected 128");
    assert_int_equal(open_split(&s, name, 26, SCALES, 1, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "is of type I32, expected F16 or F32");
    /* values are checked when they are read */
    static const float bad[] = { 1e6f, 1e-9f, INFINITY, NAN };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char buf[16];
        qsf_test_expect_ok(open_split(&s, name, QK_GGML_F32, SCALES, bad[i], &e), &e);
        const QsfTensor *t = qsf_source_find_tensor(s, "blk.0.attn_q.weight");
        qsf_test_expect_ok(qsf_source_read_bytes(s, t, 10, buf, sizeof buf, &e), &e);
        assert_int_equal(qsf_source_read_bytes(s, t, 0, buf, sizeof buf, &e), QSF_E_MODEL);
        qsf_test_expect_err(&e, QSF_E_MODEL, "tensor 'blk.0.attn_q.weight': the scale of block 0 is ");
        qsf_source_close(s);
    }
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
    qsf_test_expect_ok(open_split(&s, "blk.0.attn_q.scale", QK_GGML_F16, SCALES, scale_of(0), &e), &e);
    const size_t entries = qsf_meta_count(s);
    for (int i = 0; i < 3; i++) { /* again and again */
        qsf_test_expect_ok(qsf_source_override(s, QSF_I2S_KEY "=str:qk256", &e), &e);
        const QsfTensor *t = qsf_source_find_tensor(s, "blk.0.attn_q.weight");
        assert_int_equal(t->dtype, QK_GGML_I2_256);
        assert_int_equal(t->file, 0);
        assert_int_equal(qsf_source_n_tensors(s), 3);
        assert_non_null(qsf_source_find_tensor(s, "blk.0.attn_q.scale"));
        assert_null(qsf_source_virtual_file(s));
        assert_int_equal(qsf_meta_count(s), entries);
        qsf_test_expect_ok(qsf_source_override(s, QSF_I2S_KEY "=str:split32", &e), &e);
        expect_joined(s);
        assert_int_equal(qsf_source_n_tensors(s), 2);
    }
    assert_int_equal(qsf_source_override(s, QSF_I2S_KEY "=str:bitnet32f16", &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "not the size for --i2s-flavor");
    qsf_err_clear(&e);
    assert_int_equal(qsf_source_override(s, QSF_I2S_KEY "=str:other", &e), QSF_E_USAGE);
    qsf_test_expect_err(&e, QSF_E_USAGE, "microsoft, bitnet32f16, split32 or qk256");
    qsf_err_clear(&e);
    assert_int_equal(qsf_source_override(s, QSF_I2S_KEY "=null", &e), QSF_E_USAGE);
    qsf_source_close(s);
    qsf_test_expect_ok(open_i2s(&s, BARE, "first", 0, &e), &e);
    assert_int_equal(qsf_source_override(s, QSF_I2S_KEY "=str:split32", &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "there is no tensor with its scales");
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
        cmocka_unit_test(test_sizes),   cmocka_unit_test(test_split),  cmocka_unit_test(test_split_refused),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_chosen),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
