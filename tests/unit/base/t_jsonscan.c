/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Scanning JSON without a tree: values, escapes, ends, and everything that is not JSON. */
#include "src/base/jsonscan.h"

#include <math.h>

#include "tests/harness/qsf_test.h"

static QsfJsonScan scan(const char *text) {
    QsfJsonScan s;
    qsf_jscan_init(&s, text, strlen(text));
    return s;
}

static void test_strings(void **state) {
    static const struct {
        const char *text, *want;
        size_t len;
    } good[] = {
        { "\"\"", "", 0 },
        { "  \"a\\n\\t\\\"\\\\\\/\\b\\f\\r\"", "a\n\t\"\\/\b\f\r", 9 },
        { "\"\\u00e9\\u2581\"", "\xC3\xA9\xE2\x96\x81", 5 },
        { "\"\\ud83d\\uDE00\"", "\xF0\x9F\x98\x80", 4 },
        { "\"\\ud800\\udc00\"", "\xF0\x90\x80\x80", 4 },
        { "\"x\\u0000y\"", "x\0y", 3 },
        { "\"\xC3\xA9\"", "\xC3\xA9", 2 },
    };
    static const struct {
        const char *text, *part;
    } bad[] = {
        { "", "byte 0" },
        { "7", "a string" },
        { "\"abc", "the end of a string" },
        { "\"a\\", "a JSON escape sequence" },
        { "\"\\x41\"", "byte 2: expected a JSON escape sequence" },
        { "\"\\u12g4\"", "hexadecimal" },
        { "\"\\u12", "hexadecimal" },
        { "\"\\ud83d\"", "surrogate" },
        { "\"\\ud83d\\u0041\"", "surrogate" },
        { "\"\\ude00\"", "lone surrogate" },
        { "\"a\nb\"", "control character" },
        { "\"a\xFF\"", "byte 2: expected valid UTF-8" },
        { "\"\xC3", "valid UTF-8" },
        { "\"\xED\xA0\x80\"", "valid UTF-8" },
    };
    (void)state;
    QsfStrbuf b = QSF_STRBUF_INIT;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        QsfErr e = { 0 };
        QsfJsonScan s = scan(good[i].text);
        qsf_test_expect_ok(qsf_jscan_string(&s, &b, &e), &e);
        assert_int_equal(b.len, good[i].len);
        if (b.len > 0) assert_memory_equal(b.data, good[i].want, b.len);
        qsf_test_expect_ok(qsf_jscan_end(&s, &e), &e);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        QsfErr e = { 0 };
        QsfJsonScan s = scan(bad[i].text);
        assert_int_equal(qsf_jscan_string(&s, &b, &e), QSF_E_MODEL);
        qsf_test_expect_err(&e, QSF_E_MODEL, bad[i].part);
    }
    qsf_strbuf_free(&b);
}

static void test_numbers(void **state) {
    static const struct {
        const char *text;
        double want;
    } good[] = {
        { "0", 0 },       { "-7", -7 },
        { "12.5", 12.5 }, { "-2.0122928619384766", -2.0122928619384766 },
        { "1e3", 1000 },  { "25E-2", 0.25 },
        { "1e-400", 0 },  { "123456789012345678901234567890", 1.2345678901234568e29 },
        { "-0.0", 0 },    { "0.000001", 1e-6 },
    };
    static const char *const bad[] = { "", "-", "x", ".5", "1.", "1e", "1e+", "-e1" };
    (void)state;
    double v;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        QsfErr e = { 0 };
        QsfJsonScan s = scan(good[i].text);
        qsf_test_expect_ok(qsf_jscan_number(&s, &v, &e), &e);
        assert_true(fabs(v - good[i].want) <= 4e-16 * fabs(good[i].want));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        QsfErr e = { 0 };
        QsfJsonScan s = scan(bad[i]);
        assert_int_equal(qsf_jscan_number(&s, &v, &e), QSF_E_MODEL);
    }
}

/* What is written with enough digits is read as the same double, of any size. */
static void numbers_are_exact(void **state) {
    uint64_t x = 88172645463325252u;
    char text[40];
    (void)state;
    for (int i = 0; i < 20000; i++) {
        QsfErr e = { 0 };
        double want, v;
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        if (i % 2 == 0)
            memcpy(&want, &x, sizeof want);
        else
            want = (double)(int64_t)x * 0x1p-63; /* as most numbers of files */
        if (!isfinite(want)) continue;
        snprintf(text, sizeof text, i % 3 == 0 ? "%.17e" : "%.17g", want);
        QsfJsonScan s = scan(text);
        qsf_test_expect_ok(qsf_jscan_number(&s, &v, &e), &e);
        assert_memory_equal(&v, &want, sizeof v);
    }
}

/* Numbers used as sizes: exact, or refused. */
static void test_whole_numbers(void **state) {
    static const struct {
        const char *text;
        uint64_t want;
    } good[] = {
        { "0", 0 },
        { " 7,", 7 },
        { "9007199254740993]", 9007199254740993u },
        { "18446744073709551615", UINT64_MAX },
    };
    static const char *const bad[] = {
        "",  "-1",    "+1", "1.0", "1e3", "01", "18446744073709551616", "99999999999999999999999",
        "x", "\"1\"", "00", ".5"
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        QsfErr e = { 0 };
        QsfJsonScan s = scan(good[i].text);
        uint64_t v = 1;
        qsf_test_expect_ok(qsf_jscan_u64(&s, &v, &e), &e);
        assert_true(v == good[i].want);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        QsfErr e = { 0 };
        QsfJsonScan s = scan(bad[i]);
        uint64_t v = 1;
        if (qsf_jscan_u64(&s, &v, &e) == QSF_OK)
            fail_msg("'%s' was parsed as %llu", bad[i], (unsigned long long)v);
        qsf_test_expect_err(&e, QSF_E_MODEL, "whole number");
    }
}

static void test_iteration(void **state) {
    (void)state;
    QsfErr e = { 0 };
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfJsonScan s = scan(" { \"a\" : [1, 2 ,3], \"b\":{\"x]\": \"}\\\"{\"} ,\"c\" :null}\n");
    bool first = true, more;
    static const char *const keys[] = { "a", "b", "c" }, *const values[] = { "[1, 2 ,3]",
                                                                             "{\"x]\": \"}\\\"{\"}", "null" };
    qsf_test_expect_ok(qsf_jscan_enter(&s, '{', &e), &e);
    for (size_t i = 0; i < 3; i++) {
        size_t begin, end;
        qsf_test_expect_ok(qsf_jscan_next(&s, '}', &first, &more, &e), &e);
        assert_true(more);
        qsf_test_expect_ok(qsf_jscan_key(&s, &b, &e), &e);
        assert_string_equal(qsf_strbuf_str(&b), keys[i]);
        qsf_test_expect_ok(qsf_jscan_skip(&s, &begin, &end, &e), &e);
        assert_int_equal(end - begin, strlen(values[i]));
        assert_memory_equal(s.text + begin, values[i], end - begin);
    }
    qsf_test_expect_ok(qsf_jscan_next(&s, '}', &first, &more, &e), &e);
    assert_false(more);
    qsf_test_expect_ok(qsf_jscan_end(&s, &e), &e);
    qsf_strbuf_free(&b);
}

static void test_broken(void **state) {
    static const char *const skips[] = { "", "]", "[", "[1", "{\"a\":[}", "[1}", "\"abc", "[\"a\\", "," };
    (void)state;
    size_t begin, end;
    for (size_t i = 0; i < sizeof skips / sizeof *skips; i++) {
        QsfErr e = { 0 };
        QsfJsonScan s = scan(skips[i]);
        assert_int_equal(qsf_jscan_skip(&s, &begin, &end, &e), QSF_E_MODEL);
        qsf_test_expect_err(&e, QSF_E_MODEL, "JSON");
    }
    char deep[512];
    QsfErr e = { 0 };
    memset(deep, '[', sizeof deep);
    QsfJsonScan s;
    qsf_jscan_init(&s, deep, sizeof deep);
    assert_int_equal(qsf_jscan_skip(&s, &begin, &end, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "nesting");
    bool first = false, more;
    s = scan("1 2]");
    double v;
    qsf_err_clear(&e);
    qsf_test_expect_ok(qsf_jscan_number(&s, &v, &e), &e);
    assert_int_equal(qsf_jscan_next(&s, ']', &first, &more, &e), QSF_E_MODEL);
    s = scan("x");
    qsf_err_clear(&e);
    assert_int_equal(qsf_jscan_end(&s, &e), QSF_E_MODEL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings),       cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_iteration),     cmocka_unit_test(test_broken),
        cmocka_unit_test(test_whole_numbers), cmocka_unit_test(numbers_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
