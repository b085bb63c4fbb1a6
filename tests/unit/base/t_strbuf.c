/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Growable bytes. */
#include "tests/harness/qsf_test.h"

#include "src/base/strbuf.h"

static void test_append(void **state) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    (void)state;
    assert_string_equal(qsf_strbuf_str(&b), "");
    qsf_strbuf_adds(&b, "ab");
    qsf_strbuf_addc(&b, '\0');
    qsf_strbuf_addf(&b, "%d-%s", 42, "x");
    qsf_strbuf_add(&b, NULL, 0);
    assert_int_equal(b.len, 7);
    assert_memory_equal(b.data,
                        "ab\0"
                        "42-x",
                        8);
    for (int i = 0; i < 10000; i++) qsf_strbuf_addc(&b, 'z');
    assert_int_equal(b.len, 10007);
    assert_int_equal(b.data[10007], 0);
    assert_true(qsf_strbuf_ok(&b));
    qsf_strbuf_clear(&b);
    assert_string_equal(qsf_strbuf_str(&b), "");
    qsf_strbuf_free(&b);
}

static void test_utf8(void **state) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    (void)state;
    qsf_strbuf_add_utf8(&b, 'A');
    qsf_strbuf_add_utf8(&b, 0xE4);
    qsf_strbuf_add_utf8(&b, 0x20AC);
    qsf_strbuf_add_utf8(&b, 0x1F600);
    qsf_strbuf_add_utf8(&b, 0x110000);
    assert_string_equal(qsf_strbuf_str(&b), "A\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbd");
    qsf_strbuf_free(&b);
}

static void test_tests(void **state) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    (void)state;
    assert_true(qsf_strbuf_is(&b, ""));
    qsf_strbuf_add(&b, "F32\0x", 5);
    assert_false(qsf_strbuf_is(&b, "F32"));
    b.len = 3;
    assert_true(qsf_strbuf_is(&b, "F32") && !qsf_strbuf_is(&b, "F3") && !qsf_strbuf_is(&b, "F32x"));
    qsf_strbuf_free(&b);
}

static void test_take_and_failure(void **state) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    size_t len = 99;
    (void)state;
    char *p = qsf_strbuf_take(&b, &len);
    assert_non_null(p);
    assert_int_equal(len, 0);
    assert_string_equal(p, "");
    free(p);
    qsf_strbuf_adds(&b, "kept");
    qsf_strbuf_add(&b, "", SIZE_MAX / 2); /* impossible: sticky failure, nothing read */
    assert_false(qsf_strbuf_ok(&b));
    qsf_strbuf_adds(&b, "ignored");
    assert_string_equal(qsf_strbuf_str(&b), "kept");
    assert_null(qsf_strbuf_take(&b, &len));
    assert_true(qsf_strbuf_ok(&b));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_append), cmocka_unit_test(test_utf8),
                                        cmocka_unit_test(test_take_and_failure),
                                        cmocka_unit_test(test_tests) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
