/* SPDX-License-Identifier: GPL-3.0-or-later */
/* JSON reading and writing. */
#include "tests/harness/qsf_test.h"

#include <float.h>
#include <locale.h>
#include <math.h>

#include "src/base/json.h"

static void test_read(void **state) {
    static const char text[] = "{\"z\": [1, 2.5, true, null, \"a\\u0000b\"], \"a\": {\"x\": -7}, \"e\": 1e3}";
    QsfErr e = { 0 };
    QsfJson *v = qsf_json_parse(text, sizeof text - 1, &e);
    const char *key;
    size_t len;
    (void)state;
    assert_non_null(v);
    assert_int_equal(qsf_json_type(v), QSF_JSON_OBJECT);
    assert_int_equal(qsf_json_size(v), 3);
    const QsfJson *z = qsf_json_get(v, "z");
    assert_int_equal(qsf_json_size(z), 5);
    assert_int_equal(qsf_json_int(qsf_json_at(z, 0), 0), 1);
    assert_true(qsf_json_real(qsf_json_at(z, 1), 0) > 2.4);
    assert_true(qsf_json_bool(qsf_json_at(z, 2), false));
    assert_int_equal(qsf_json_type(qsf_json_at(z, 3)), QSF_JSON_NULL);
    assert_memory_equal(qsf_json_string(qsf_json_at(z, 4), &len), "a\0b", 4);
    assert_int_equal(len, 3);
    assert_null(qsf_json_string(qsf_json_at(z, 4), NULL)); /* not a C string */
    assert_null(qsf_json_at(z, 5));
    assert_null(qsf_json_get(v, "absent"));
    assert_int_equal(qsf_json_int(qsf_json_get(qsf_json_get(v, "a"), "x"), 0), -7);
    assert_int_equal(qsf_json_int(qsf_json_get(v, "e"), 0), 1000);
    assert_int_equal(qsf_json_int(z, 42), 42);
    assert_ptr_equal(qsf_json_member(v, 0, &key), z);
    assert_string_equal(key, "z");
    qsf_json_member(v, 2, &key);
    assert_string_equal(key, "e");
    assert_null(qsf_json_member(v, 3, &key));
    const QsfJson *value;
    int n = 0;
    for (const void *it = NULL; (it = qsf_json_next(v, it, &key, &value)) != NULL;) n++;
    assert_int_equal(n, 3);
    qsf_json_free(v);
    qsf_json_free(NULL);
    assert_null(qsf_json_get(NULL, "x"));
    assert_int_equal(qsf_json_size(NULL), 0);
}

static void test_pointer(void **state) {
    static const char text[] = "{\"a/~%\": [1, {\"\": 2}], \"n\": 3}";
    static const char *const nowhere[] = { "",     "n",     "/n",           "#n",           "#/absent",
                                           "#/n/", "#/n/0", "#/a~1~0%25/2", "#/a~1~0%25/x", "#/a~1~0%25/",
                                           "#/~",  "#/~2",  "#/%2",         "#/%zz",        NULL };
    char name[300] = "#/";
    QsfErr e = { 0 };
    QsfJson *v = qsf_json_parse(text, sizeof text - 1, &e);
    (void)state;
    assert_non_null(v);
    assert_ptr_equal(qsf_json_pointer(v, "#"), v);
    assert_int_equal(qsf_json_int(qsf_json_pointer(v, "#/n"), 0), 3);
    assert_int_equal(qsf_json_int(qsf_json_pointer(v, "#/%6e"), 0), 3);
    assert_int_equal(qsf_json_int(qsf_json_pointer(v, "#/a~1~0%25/0"), 0), 1);
    assert_int_equal(qsf_json_int(qsf_json_pointer(v, "#/a~1~0%25/1/"), 0), 2);
    for (size_t i = 0; nowhere[i] != NULL; i++) assert_null(qsf_json_pointer(v, nowhere[i]));
    memset(name + 2, 'n', sizeof name - 3);
    assert_null(qsf_json_pointer(v, name));
    assert_null(qsf_json_pointer(v, "#/a~1~0%25/4294967296"));
    assert_null(qsf_json_pointer(v, NULL));
    assert_null(qsf_json_pointer(NULL, "#"));
    qsf_json_free(v);
}

static void test_refuse(void **state) {
    static const char *const bad[] = {
        "", "{", "[1,]", "{\"a\":1}x", "\"\xff\"", "nul", "[1 2]", "{\"a\" 1}"
    };
    QsfErr e = { 0 };
    char *deep = malloc(200001);
    (void)state;
    assert_non_null(deep);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        qsf_err_clear(&e);
        assert_null(qsf_json_parse(bad[i], strlen(bad[i]), &e));
        qsf_test_expect_err(&e, QSF_E_RUNTIME, "line");
    }
    memset(deep, '[', 200000);
    qsf_err_clear(&e);
    assert_null(qsf_json_parse(deep, 200000, &e));
    qsf_test_expect_err(&e, QSF_E_RUNTIME, "deep");
    free(deep);
    QsfJson *v = qsf_json_parse("\"[[\\\"[\"", 7, NULL);
    assert_non_null(v);
    qsf_json_free(v);
}

/* Parses a list of one number. */
static void expect_number(const char *text, QsfJsonType type, double want) {
    QsfErr e = { 0 };
    char list[512];
    snprintf(list, sizeof list, "[%s]", text);
    QsfJson *v = qsf_json_parse(list, strlen(list), &e);
    if (v == NULL) print_error("%s: %s\n", text, e.msg);
    assert_non_null(v);
    const QsfJson *one = qsf_json_at(v, 0);
    if (qsf_json_type(one) != type || qsf_json_real(one, NAN) != want) print_error("%s\n", text);
    assert_int_equal(qsf_json_type(one), type);
    assert_true(qsf_json_real(one, NAN) == want);
    qsf_json_free(v);
}

static void test_numbers_of_others(void **state) {
    (void)state;
    char digits[401];
    memset(digits, '9', 400);
    digits[400] = '\0';
    expect_number("1000000000000000019884624838656", QSF_JSON_REAL, 1e30);
    expect_number("-1000000000000000019884624838656", QSF_JSON_REAL, -1e30);
    expect_number("9223372036854775808", QSF_JSON_REAL, 9223372036854775808.0);
    expect_number("18446744073709551615", QSF_JSON_REAL, 18446744073709551615.0);
    expect_number("-9223372036854775809", QSF_JSON_REAL, -9223372036854775809.0);
    expect_number("9223372036854775807", QSF_JSON_INT, 9223372036854775807.0);
    expect_number("-9223372036854775808", QSF_JSON_INT, -9223372036854775808.0);
    expect_number("-0", QSF_JSON_INT, 0);
    expect_number("1e30", QSF_JSON_REAL, 1e30);
    expect_number("1E+2", QSF_JSON_REAL, 100);
    expect_number("1e400", QSF_JSON_REAL, DBL_MAX);
    expect_number("-1e400", QSF_JSON_REAL, -DBL_MAX);
    expect_number("1e-400", QSF_JSON_REAL, 0);
    expect_number("1e99999999999999999999", QSF_JSON_REAL, DBL_MAX);
    expect_number(digits, QSF_JSON_REAL, DBL_MAX);
    expect_number("Infinity", QSF_JSON_REAL, DBL_MAX);
    expect_number("NaN", QSF_JSON_REAL, DBL_MAX);
    expect_number("-Infinity", QSF_JSON_REAL, -DBL_MAX);
}

/* Strings that look like numbers stay, and what is around a number is read as before. */
static void test_numbers_in_place(void **state) {
    static const char text[] =
        "\xEF\xBB\xBF{\"a\": \"99999999999999999999 \\\"1e999\", \"99999999999999999999\": "
        "[99999999999999999999,1,2.5],\"b\":99999999999999999999, \"b\": 3}";
    static const char *const bad[] = { "[99999999999999999999x]",
                                       "[1e]",
                                       "[0199999999999999999999]",
                                       "[Infinit]",
                                       "[NaNs]",
                                       "[-NaN]",
                                       "[99999999999999999999",
                                       "[--1]",
                                       "[1.]",
                                       "\xEF\xBB\xBF" };
    (void)state;
    QsfErr e = { 0 };
    QsfJson *v = qsf_json_parse(text, sizeof text - 1, &e);
    assert_non_null(v);
    assert_string_equal(qsf_json_string(qsf_json_get(v, "a"), NULL), "99999999999999999999 \"1e999");
    const QsfJson *list = qsf_json_get(v, "99999999999999999999");
    assert_int_equal(qsf_json_type(qsf_json_at(list, 0)), QSF_JSON_REAL);
    assert_int_equal(qsf_json_type(qsf_json_at(list, 1)), QSF_JSON_INT);
    assert_int_equal(qsf_json_int(qsf_json_get(v, "b"), 0), 3); /* the later of two */
    qsf_json_free(v);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        qsf_err_clear(&e);
        assert_null(qsf_json_parse(bad[i], strlen(bad[i]), &e));
        qsf_test_expect_err(&e, QSF_E_RUNTIME, "line");
    }
}

static void expect_json_string(const char *s, size_t len, const char *want) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_json_put_string(&b, s, len);
    assert_string_equal(qsf_strbuf_str(&b), want);
    qsf_strbuf_free(&b);
}

static void test_write_string(void **state) {
    (void)state;
    expect_json_string("a\"\\/\b\f\n\r\t\x1b\x7f\0", 12,
                       "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u001b\\u007f\\u0000\"");
    expect_json_string("\xc3\xa4\xc2\x9b\xff\xf0\x9f\x98\x80", 9,
                       "\"\xc3\xa4\\u009b\xef\xbf\xbd\xf0\x9f\x98\x80\"");
    /* invisible, or changing the order of others: U+202E, U+FEFF, U+E0041 */
    expect_json_string("\xe2\x80\xae\xef\xbb\xbf\xf3\xa0\x81\x81", 10, "\"\\u202e\\ufeff\\udb40\\udc41\"");
    expect_json_string("", 0, "\"\"");
}

static void expect_json_real(double v, const char *want) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_json_put_real(&b, v);
    assert_string_equal(qsf_strbuf_str(&b), want);
    qsf_strbuf_free(&b);
}

static void test_write_real(void **state) {
    (void)state;
    expect_json_real(0.1, "0.1");
    expect_json_real(1.0, "1");
    expect_json_real(60.0, "60");
    expect_json_real(-1234500.0, "-1234500");
    expect_json_real(0.00025, "0.00025");
    expect_json_real(1e15, "1e+15");
    expect_json_real(0.0, "0");
    expect_json_real(-2.5e-300, "-2.5e-300");
    expect_json_real(1.0 / 3.0, "0.3333333333333333");
    expect_json_real(DBL_MAX, "1.7976931348623157e+308");
    expect_json_real((double)NAN, "null");
    expect_json_real((double)INFINITY, "null");
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL) expect_json_real(0.5, "0.5");
    setlocale(LC_NUMERIC, "C");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_read),
                                        cmocka_unit_test(test_pointer),
                                        cmocka_unit_test(test_refuse),
                                        cmocka_unit_test(test_numbers_of_others),
                                        cmocka_unit_test(test_numbers_in_place),
                                        cmocka_unit_test(test_write_string),
                                        cmocka_unit_test(test_write_real) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
