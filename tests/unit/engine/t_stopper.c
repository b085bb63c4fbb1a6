/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stop strings split anywhere: the output is the text up to the first stop string, however it arrives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/engine/stopper.h"

typedef struct Case {
    const char *stop[4];
    const char *text, *want;
    bool hit;
} Case;

static const Case cases[] = {
    /* clang-format off */
    { { "END" }, "one END two", "one ", true },
    { { "END" }, "one EN", "one EN", false },
    { { "END" }, "ENENDx", "EN", true },
    { { "aab" }, "aaab", "a", true },
    { { "\n\nUser:", "###" }, "text\n\nUse it\n\nUser: x", "text\n\nUse it", true },
    { { "bc", "abcd" }, "xabcd", "xa", true },
    { { "abcd", "c" }, "xabcd", "xab", true },
    { { "\xe2\x82\xac" }, "5 \xe2\x82\xac", "5 ", true },
    /* One is a prefix, a suffix, or in the middle of another. */
    { { "ab", "abc" }, "xabc", "x", true },
    { { "abc", "ab" }, "xabd", "x", true },
    { { "abc", "bc" }, "xabc", "x", true },
    { { "abcde", "cd" }, "abcd", "ab", true },
    { { "aaa", "aab" }, "aaaab", "", true },
    { { "abab", "baba" }, "xbababx", "x", true },
    { { "###", "\n\n", "User:" }, "a\n# #\nUser: b", "a\n# #\n", true },
    /* Characters that share their first bytes with a stop string. */
    { { "\xf0\x9f\x98\x80" }, "\xf0\x9f\x98\x81\xf0\x9f\x98\x80", "\xf0\x9f\x98\x81", true },
    { { "\xe2\x82\xac\xe2\x82\xac", "\xc3\xa9" }, "\xe2\x82\xac \xe2\x82\xa3\xc3\xa8", "\xe2\x82\xac \xe2\x82\xa3\xc3\xa8", false },
    { { "x" }, "", "", false },
    { { NULL }, "nothing to stop at", "nothing to stop at", false },
    /* clang-format on */
};

static size_t count(const Case *c) {
    size_t n = 0;
    while (n < 4 && c->stop[n] != NULL) n++;
    return n;
}

/* Feeds in pieces of `step` bytes. */
static void run(const Case *c, size_t step) {
    QsfStopper s;
    QsfErr err = { 0 };
    char got[256] = "";
    size_t n, len = strlen(c->text), used = 0;
    assert_int_equal(qsf_stopper_open(&s, c->stop, count(c), 64, &err), QSF_OK);
    for (size_t at = 0; at < len && !s.hit; at += step) {
        const char *out = qsf_stopper_feed(&s, c->text + at, len - at < step ? len - at : step, &n);
        memcpy(got + used, out, n);
        used += n;
    }
    if (!s.hit) {
        const char *out = qsf_stopper_flush(&s, &n);
        memcpy(got + used, out, n);
        used += n;
    }
    got[used] = '\0';
    assert_string_equal(got, c->want);
    assert_int_equal(s.hit, c->hit);
    qsf_stopper_close(&s);
}

static void any_cut_gives_the_same(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t step = 1; step <= 12; step++) run(&cases[i], step);
}

static void decided_text_is_emitted_immediately(void **state) {
    (void)state;
    static const char *const stop[] = { "</s>" };
    QsfStopper s;
    QsfErr err = { 0 };
    size_t n;
    assert_int_equal(qsf_stopper_open(&s, stop, 1, 64, &err), QSF_OK);
    qsf_stopper_feed(&s, "hello <", 7, &n);
    assert_int_equal(n, 6);
    assert_memory_equal(qsf_stopper_feed(&s, "b", 1, &n), "<b", 2);
    assert_int_equal(n, 2);
    qsf_stopper_feed(&s, "</", 2, &n);
    assert_int_equal(n, 0);
    qsf_stopper_flush(&s, &n);
    assert_int_equal(n, 2);
    qsf_stopper_close(&s);
}

static void bad_strings_are_refused(void **state) {
    (void)state;
    static const char *const empty[] = { "a", "" }, *const bad[] = { "\x80" };
    QsfStopper s;
    QsfErr err = { 0 };
    assert_int_equal(qsf_stopper_open(&s, empty, 2, 64, &err), QSF_E_USAGE);
    assert_non_null(strstr(err.msg, "stop string 2"));
    qsf_stopper_close(&s);
    qsf_err_clear(&err);
    assert_int_equal(qsf_stopper_open(&s, bad, 1, 64, &err), QSF_E_USAGE);
    qsf_stopper_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_cut_gives_the_same),
        cmocka_unit_test(decided_text_is_emitted_immediately),
        cmocka_unit_test(bad_strings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
