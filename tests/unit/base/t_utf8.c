/* SPDX-License-Identifier: GPL-3.0-or-later */
/* UTF-8 decoding, compared with the definition and checked for consistency. */
#include "tests/harness/qsf_test.h"

#include "src/base/utf8.h"

static void test_round_trip(void **state) {
    (void)state;
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
        char s[4];
        uint32_t back = 1;
        if (cp >= 0xD800 && cp <= 0xDFFF) continue;
        size_t n = qsf_utf8_put(cp, s);
        assert_int_equal(n, cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4);
        if (qsf_utf8_next(s, n, &back) != n || back != cp) fail_msg("U+%04X", cp);
        for (size_t cut = 1; cut < n; cut++) {
            if (qsf_utf8_next(s, cut, &back) != 1 || back != 0xFFFFFFFFu) fail_msg("cut U+%04X", cp);
            if (qsf_utf8_incomplete_tail(s, cut) != cut) fail_msg("tail of U+%04X", cp);
        }
        assert_int_equal(qsf_utf8_incomplete_tail(s, n), 0);
    }
}

static void test_ill_formed(void **state) {
    static const char *const bad[] = { "\x80",
                                       "\xc0\x80",
                                       "\xc1\xbf",
                                       "\xe0\x80\x80",
                                       "\xe0\x9f\xbf",
                                       "\xed\xa0\x80",
                                       "\xed\xbf\xbf",
                                       "\xf0\x80\x80\x80",
                                       "\xf0\x8f\xbf\xbf",
                                       "\xf4\x90\x80\x80",
                                       "\xf5\x80\x80\x80",
                                       "\xff",
                                       "\xc3(",
                                       "\xe2\x82(",
                                       "\xf0\x9f\x98(" };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint32_t cp = 0;
        assert_int_equal(qsf_utf8_next(bad[i], strlen(bad[i]), &cp), 1);
        assert_int_equal(cp, 0xFFFFFFFFu);
        assert_false(qsf_utf8_valid(bad[i], strlen(bad[i])));
    }
    uint32_t cp = 5;
    assert_int_equal(qsf_utf8_next("", 0, &cp), 0);
    assert_true(qsf_utf8_valid("a\0\xc3\xa4", 4));
}

static void test_tail(void **state) {
    (void)state;
    assert_int_equal(qsf_utf8_incomplete_tail("", 0), 0);
    assert_int_equal(qsf_utf8_incomplete_tail("abc\xf0\x9f\x98", 6), 3);
    assert_int_equal(qsf_utf8_incomplete_tail("abc\xc3", 4), 1);
    assert_int_equal(qsf_utf8_incomplete_tail("\x80\x80\x80\x80", 4), 0);
    assert_int_equal(qsf_utf8_incomplete_tail("\xed\xa0", 2), 0); /* a surrogate: cannot be completed */
    assert_int_equal(qsf_utf8_incomplete_tail("\xff", 1), 0);
}

static void test_clean(void **state) {
    char s[] = "a\nb\x01\xff\xe2\x80\xa8z";
    (void)state;
    size_t n = qsf_utf8_clean(s, strlen(s), true);
    assert_int_equal(n, 7);
    assert_memory_equal(s, "a\nb???z", 7);
    assert_int_equal(qsf_utf8_clean(s, n, false), 7);
    assert_memory_equal(s, "a?b???z", 7);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_round_trip), cmocka_unit_test(test_ill_formed),
                                        cmocka_unit_test(test_tail), cmocka_unit_test(test_clean) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
