/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Error values: first failure wins, messages are safe to print. */
#include "tests/harness/qsf_test.h"

static void test_first_wins(void **state) {
    QsfErr e = { 0 };
    (void)state;
    assert_int_equal(qsf_err_set(&e, QSF_E_MODEL, "%s: bad %d", "f", 7), QSF_E_MODEL);
    assert_int_equal(qsf_err_set(&e, QSF_E_BUDGET, "later"), QSF_E_BUDGET);
    assert_int_equal(e.code, QSF_E_MODEL);
    assert_string_equal(e.msg, "f: bad 7");
    assert_int_equal(qsf_err_prefix(&e, "open %s", "x"), QSF_E_MODEL);
    assert_string_equal(e.msg, "open x: f: bad 7");
    qsf_err_clear(&e);
    assert_int_equal(e.code, QSF_OK);
    assert_int_equal(qsf_err_prefix(&e, "nothing"), QSF_OK);
    assert_string_equal(e.msg, "");
    assert_int_equal(qsf_err_set(NULL, QSF_E_RUNTIME, "x"), QSF_E_RUNTIME);
}

static void test_cleaned(void **state) {
    QsfErr e = { 0 };
    (void)state;
    qsf_err_set(&e, QSF_E_MODEL, "%s",
                "a\x1b[31m\nb\x7f\xc2\x9b"
                "c\x9b\xe2\x80\xae\xc3\xa4");
    assert_string_equal(e.msg, "a?[31m?b??c??\xc3\xa4");
    qsf_err_clear(&e);
    qsf_err_set(&e, QSF_E_MODEL, "one\ntwo %s\n", "\t");
    assert_string_equal(e.msg, "one\ntwo ?");
    qsf_err_clear(&e);
    qsf_err_set(&e, QSF_E_MODEL, "one %s\ntwo %s", "a\nb\x01", "\x02\n");
    assert_string_equal(e.msg, "one a?b?\ntwo ??");
    qsf_err_prefix(&e, "p\n%s", "\n");
    assert_string_equal(e.msg, "p\n?: one a?b?\ntwo ??");
    qsf_err_clear(&e);
    qsf_err_set(&e, QSF_E_MODEL, "\n%s", "\x01\x02\x03\x04\x05\x06\x07\x08|");
    assert_string_equal(e.msg, "?????????|");
    qsf_err_clear(&e);
    qsf_err_set(&e, QSF_E_MODEL, "%s", "\xef\xbb\xbf\xd8\x9c\xf3\xa0\x81\x81."); /* U+FEFF, U+061C, U+E0041 */
    assert_string_equal(e.msg, "???.");
    qsf_err_clear(&e);
    assert_int_equal(qsf_err_lines(&e, QSF_E_BUDGET, "a\nb\x1b\n\n"), QSF_E_BUDGET);
    assert_string_equal(e.msg, "a\nb?");
}

static void test_cut_at_character(void **state) {
    char big[QSF_ERR_MSG_MAX * 2];
    QsfErr e = { 0 };
    (void)state;
    for (size_t i = 0; i + 3 < sizeof big; i += 2) memcpy(big + i, "\xc3\xa4", 3);
    qsf_err_set(&e, QSF_E_MODEL, "%s", big);
    assert_int_equal(strlen(e.msg), QSF_ERR_MSG_MAX - 2);
    qsf_err_prefix(&e, "p");
    size_t n = strlen(e.msg);
    assert_int_equal((unsigned char)e.msg[n - 1], 0xa4);
    assert_memory_equal(e.msg, "p: \xc3\xa4", 5);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_first_wins), cmocka_unit_test(test_cleaned),
                                        cmocka_unit_test(test_cut_at_character) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
