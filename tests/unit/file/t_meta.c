/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Typed metadata: conversions, ranges, arrays, overrides. */
#include "tests/harness/qsf_test.h"

#include "src/file/source.h"
#include "tests/harness/gguf_build.h"

static QsfLedger ledger;
static QsfSource *src;

static int setup(void **state) {
    static const char *const words[] = { "x", "", "long word" };
    static const int8_t i8[] = { -1, 2 };
    static const uint16_t u16[] = { 65535 };
    static const uint64_t u64[] = { 1, UINT64_MAX };
    static const float f32[] = { 0.5f, -2.0f };
    static const double f64[] = { 0.25 };
    const char *path = qsf_test_tmp("meta.gguf");
    QsfGgufBuild b = { 0 };
    (void)state;
    qsf_gb_raw(&b, "u8", QSF_META_U8, "\xff", 1);
    qsf_gb_raw(&b, "i8", QSF_META_I8, "\xff", 1);
    qsf_gb_raw(&b, "u16", QSF_META_U16, "\xff\xff", 2);
    qsf_gb_raw(&b, "i16", QSF_META_I16, "\xfe\xff", 2);
    qsf_gb_u32(&b, "u32", 4000000000u);
    qsf_gb_raw(&b, "i32", QSF_META_I32, "\xfd\xff\xff\xff", 4);
    qsf_gb_u64(&b, "u64", UINT64_MAX);
    qsf_gb_raw(&b, "i64", QSF_META_I64, "\xfc\xff\xff\xff\xff\xff\xff\xff", 8);
    qsf_gb_f32(&b, "f32", 1.5f);
    qsf_gb_raw(&b, "f64", QSF_META_F64, f64, 8);
    qsf_gb_bool(&b, "yes", true);
    qsf_gb_str(&b, "str", "text");
    qsf_gb_raw(&b, "nul", QSF_META_STRING, "\3\0\0\0\0\0\0\0a\0b", 11);
    qsf_gb_strings(&b, "words", words, 3);
    qsf_gb_array(&b, "a8", QSF_META_I8, 2, i8, sizeof i8);
    qsf_gb_array(&b, "a16", QSF_META_U16, 1, u16, sizeof u16);
    qsf_gb_array(&b, "a64", QSF_META_U64, 2, u64, sizeof u64);
    qsf_gb_array(&b, "af", QSF_META_F32, 2, f32, sizeof f32);
    qsf_gb_array(&b, "ad", QSF_META_F64, 1, f64, sizeof f64);
    qsf_gb_array(&b, "none", QSF_META_I32, 0, "", 0);
    QsfErr e = { 0 };
    qsf_ledger_init(&ledger, 0);
    int rc = qsf_gb_write(&b, path);
    qsf_gb_free(&b);
    if (rc == 0) rc = qsf_source_open(&src, path, &ledger, &e);
    unlink(path);
    return rc;
}

static int teardown(void **state) {
    (void)state;
    qsf_source_close(src);
    return ledger.total == 0 ? 0 : -1;
}

static int64_t i64_of(const char *key) {
    QsfErr e = { 0 };
    int64_t v = 12345;
    qsf_test_expect_ok(qsf_meta_i64(src, key, 12345, &v, &e), &e);
    return v;
}

static void expect_no_u32(const char *key, const char *part) {
    QsfErr e = { 0 };
    uint32_t v;
    qsf_meta_u32(src, key, 9, &v, &e);
    qsf_test_expect_err(&e, QSF_E_MODEL, part);
    assert_non_null(strstr(e.msg, key));
}

static void test_integers(void **state) {
    (void)state;
    assert_int_equal(i64_of("u8"), 255);
    assert_int_equal(i64_of("i8"), -1);
    assert_int_equal(i64_of("u16"), 65535);
    assert_int_equal(i64_of("i16"), -2);
    assert_int_equal(i64_of("u32"), 4000000000);
    assert_int_equal(i64_of("i32"), -3);
    assert_int_equal(i64_of("i64"), -4);
    assert_int_equal(i64_of("absent"), 12345);
    QsfErr e = { 0 };
    int64_t v;
    assert_int_equal(qsf_meta_i64(src, "u64", 0, &v, &e), QSF_E_MODEL);
    expect_no_u32("u64", "out of range");
    expect_no_u32("i8", "out of range");
    expect_no_u32("f32", "of type f32");
    expect_no_u32("str", "of type string");
    expect_no_u32("words", "of type array");
}

static void test_others(void **state) {
    QsfErr e = { 0 };
    float f;
    bool b;
    const char *s;
    size_t len;
    (void)state;
    qsf_test_expect_ok(qsf_meta_f32(src, "f32", 0, &f, &e), &e);
    assert_true(f > 1.4f && f < 1.6f);
    qsf_test_expect_ok(qsf_meta_f32(src, "f64", 0, &f, &e), &e);
    assert_true(f > 0.2f && f < 0.3f);
    qsf_test_expect_ok(qsf_meta_f32(src, "i16", 0, &f, &e), &e);
    assert_true(f < -1.9f);
    assert_int_equal(qsf_meta_f32(src, "str", 0, &f, &e), QSF_E_MODEL);
    qsf_err_clear(&e);
    qsf_test_expect_ok(qsf_meta_bool(src, "yes", false, &b, &e), &e);
    assert_true(b);
    assert_int_equal(qsf_meta_bool(src, "u8", false, &b, &e), QSF_E_MODEL);
    qsf_err_clear(&e);
    qsf_test_expect_ok(qsf_meta_str(src, "nul", &s, &len, &e), &e);
    assert_int_equal(len, 3);
    assert_memory_equal(s, "a\0b", 4);
    qsf_test_expect_ok(qsf_meta_str(src, "absent", &s, &len, &e), &e);
    assert_null(s);
    assert_int_equal(qsf_meta_str(src, "u8", &s, NULL, &e), QSF_E_MODEL);
}

static void test_string_array(void **state) {
    QsfErr e = { 0 };
    QsfMetaArray a;
    bool present;
    const char *s;
    size_t len;
    (void)state;
    qsf_test_expect_ok(qsf_meta_array_open(src, "words", QSF_META_STRING, &a, &present, &e), &e);
    assert_true(present);
    assert_int_equal(a.count, 3);
    assert_int_equal(a.bytes, 3 * 8 + 10);
    qsf_test_expect_ok(qsf_meta_array_str(&a, &s, &len, &e), &e);
    assert_string_equal(s, "x");
    qsf_test_expect_ok(qsf_meta_array_str(&a, &s, &len, &e), &e);
    assert_int_equal(len, 0);
    qsf_test_expect_ok(qsf_meta_array_str(&a, &s, &len, &e), &e);
    assert_string_equal(s, "long word");
    assert_int_equal(qsf_meta_array_str(&a, &s, &len, &e), QSF_E_RUNTIME);
    qsf_meta_array_close(&a);
    qsf_err_clear(&e);
    assert_int_equal(qsf_meta_array_open(src, "words", QSF_META_I64, &a, &present, &e), QSF_E_MODEL);
    assert_false(present);
    qsf_err_clear(&e);
    assert_int_equal(qsf_meta_array_open(src, "str", QSF_META_STRING, &a, &present, &e), QSF_E_MODEL);
    qsf_err_clear(&e);
    qsf_test_expect_ok(qsf_meta_array_open(src, "absent", QSF_META_STRING, &a, &present, &e), &e);
    assert_false(present);
}

static void expect_ints(const char *key, const int64_t *want, uint64_t n) {
    QsfErr e = { 0 };
    QsfMetaArray a;
    bool present;
    qsf_test_expect_ok(qsf_meta_array_open(src, key, QSF_META_I64, &a, &present, &e), &e);
    assert_int_equal(a.count, n);
    for (uint64_t i = 0; i < n; i++) {
        int64_t v;
        qsf_test_expect_ok(qsf_meta_array_i64(&a, &v, &e), &e);
        assert_int_equal(v, want[i]);
    }
    qsf_meta_array_close(&a);
}

static void test_number_arrays(void **state) {
    static const int64_t a8[] = { -1, 2 }, a16[] = { 65535 }, a64[] = { 1 };
    QsfErr e = { 0 };
    QsfMetaArray a;
    bool present;
    int64_t v;
    float f;
    (void)state;
    expect_ints("a8", a8, 2);
    expect_ints("a16", a16, 1);
    expect_ints("none", NULL, 0);
    qsf_test_expect_ok(qsf_meta_array_open(src, "a64", QSF_META_I64, &a, &present, &e), &e);
    qsf_test_expect_ok(qsf_meta_array_i64(&a, &v, &e), &e);
    assert_int_equal(v, a64[0]);
    assert_int_equal(qsf_meta_array_i64(&a, &v, &e), QSF_E_MODEL);
    qsf_meta_array_close(&a);
    qsf_err_clear(&e);
    qsf_test_expect_ok(qsf_meta_array_open(src, "af", QSF_META_F32, &a, &present, &e), &e);
    qsf_test_expect_ok(qsf_meta_array_f32(&a, &f, &e), &e);
    assert_true(f > 0.4f && f < 0.6f);
    qsf_meta_array_close(&a);
    qsf_test_expect_ok(qsf_meta_array_open(src, "ad", QSF_META_F32, &a, &present, &e), &e);
    qsf_test_expect_ok(qsf_meta_array_f32(&a, &f, &e), &e);
    assert_true(f > 0.2f && f < 0.3f);
    qsf_meta_array_close(&a);
    assert_int_equal(qsf_meta_array_open(src, "a8", QSF_META_F32, &a, &present, &e), QSF_E_MODEL);
}

static void expect_bad_override(const char *spec, const char *part) {
    QsfErr e = { 0 };
    assert_int_equal(qsf_source_override(src, spec, &e), QSF_E_USAGE);
    qsf_test_expect_err(&e, QSF_E_USAGE, part);
    assert_non_null(strstr(e.msg, "--override-kv"));
}

static void test_overrides(void **state) {
    QsfErr e = { 0 };
    const char *s;
    size_t n = qsf_meta_count(src);
    float f;
    bool b;
    (void)state;
    expect_bad_override("key", "expected KEY");
    expect_bad_override("=int:1", "expected KEY");
    expect_bad_override("a=7", "expected KEY=null");
    expect_bad_override("a=int:7x", "not an integer");
    expect_bad_override("a=int:99999999999999999999", "not an integer");
    expect_bad_override("a=float:", "not a number");
    expect_bad_override("a=bool:1", "not true or false");
    assert_false(qsf_meta_has(src, "a"));
    qsf_test_expect_ok(qsf_source_override(src, "new=int:-5", &e), &e);
    assert_int_equal(i64_of("new"), -5);
    qsf_test_expect_ok(qsf_source_override(src, "u8=int:300", &e), &e);
    assert_int_equal(i64_of("u8"), 300);
    qsf_test_expect_ok(qsf_source_override(src, "u8=int:301", &e), &e);
    assert_int_equal(i64_of("u8"), 301);
    qsf_test_expect_ok(qsf_source_override(src, "words=str:a=b:c", &e), &e);
    qsf_test_expect_ok(qsf_meta_str(src, "words", &s, NULL, &e), &e);
    assert_string_equal(s, "a=b:c");
    qsf_test_expect_ok(qsf_source_override(src, "f32=float:0.125", &e), &e);
    qsf_test_expect_ok(qsf_meta_f32(src, "f32", 0, &f, &e), &e);
    assert_true(f > 0.12f && f < 0.13f);
    qsf_test_expect_ok(qsf_source_override(src, "yes=bool:false", &e), &e);
    qsf_test_expect_ok(qsf_meta_bool(src, "yes", true, &b, &e), &e);
    assert_false(b);
    assert_int_equal(qsf_meta_count(src), n + 1);
    qsf_test_expect_ok(qsf_source_override(src, "str=null", &e), &e);
    qsf_test_expect_ok(qsf_source_override(src, "never there=null", &e), &e);
    assert_false(qsf_meta_has(src, "str"));
    assert_int_equal(qsf_meta_count(src), n);
    for (size_t i = 0; i < n; i++) assert_string_not_equal(qsf_meta_at(src, i, NULL, NULL, NULL), "str");
    assert_null(qsf_meta_at(src, n, NULL, NULL, NULL));
    qsf_test_expect_ok(qsf_source_override(src, "str=str:back", &e), &e);
    assert_int_equal(qsf_meta_count(src), n + 1);
}

/* A caller without a length compares a C string: half a string never matches. */
static void test_nul(void **state) {
    (void)state;
    const char *v = "";
    size_t len = 0;
    QsfErr e = { 0 };
    qsf_test_expect_ok(qsf_meta_str(src, "nul", &v, &len, &e), &e);
    assert_int_equal(len, 3);
    assert_memory_equal(v, "a\0b", 3);
    qsf_meta_str(src, "nul", &v, NULL, &e);
    qsf_test_expect_err(&e, QSF_E_MODEL, "metadata key 'nul' is a string that contains a NUL");
    assert_null(v);
    qsf_err_clear(&e);
    qsf_test_expect_ok(qsf_meta_str(src, "str", &v, NULL, &e), &e);
    assert_string_equal(v, "text");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),     cmocka_unit_test(test_others),
        cmocka_unit_test(test_string_array), cmocka_unit_test(test_number_arrays),
        cmocka_unit_test(test_nul),          cmocka_unit_test(test_overrides)
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
