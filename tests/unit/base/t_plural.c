/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counts in messages. */
#include <inttypes.h>
#include <stdio.h>

#include "src/base/err.h"
#include "src/base/plural.h"
#include "src/base/strbuf.h"
#include "tests/harness/qsf_test.h"

static char text[300];

#define SAYS(want, ...)                                            \
    do {                                                           \
        (void)qsf_plural_snprintf(text, sizeof text, __VA_ARGS__); \
        assert_string_equal(text, want);                           \
    } while (0)

static void test_nouns(void **state) {
    (void)state;
    SAYS("1 token", "%u tokens", 1u);
    SAYS("0 tokens", "%u tokens", 0u);
    SAYS("11 tokens", "%u tokens", 11u);
    SAYS("-1 tokens", "%d tokens", -1);
    SAYS("1 entry, 2 entries", "%zu entries, %zu entries", (size_t)1, (size_t)2);
    SAYS("1 branch and 1 day", "%u branches and %lld days", 1u, 1ll);
    SAYS("1 KV cache", "%" PRIu64 " KV caches", (uint64_t)1);
    SAYS("the 1 byte of 1 of 1 line", "the %d bytes of %d of %d lines", 1, 1, 1);
}

static void test_words_around(void **state) {
    (void)state;
    SAYS("1 token is used", "%u tokens are used", 1u);
    SAYS("1 message was sent, 2 messages were lost", "%u messages were sent, %d messages were lost", 1u, 2);
    SAYS("1 queued message removed", "%zu queued messages removed", (size_t)1);
    SAYS("message 1 is long", "message %u is long", 1u);
    SAYS("layer 1 has rows", "layer %u has rows", 1u);
    SAYS("1 tokensome", "%u tokensome", 1u);
    SAYS("1%tokens", "%u%%tokens", 1u);
}

/* Arguments of any type before and after; only the format has nouns. */
static void test_arguments(void **state) {
    (void)state;
    SAYS("a%b 3.5 x  7 1 file", "%s %.1f %c %*u %hhu files", "a%b", 3.5, 'x', 2, 7u, (unsigned char)1);
    SAYS("1 tokens 1 token", "%s %zd tokens", "1 tokens", (ssize_t)1);
    SAYS("1 file: abc", "%ld files: %.*s", 1l, 3, "abcdef");
    SAYS("1 message, 1,204 messages", "%s messages, %s messages", "1", "1,204");
    SAYS("1 word", "%.*s words", 1, "12");
    SAYS("1 row of 1.0 KB", "%jd rows of %.1f %s", (intmax_t)1, 1.0, "KB");
}

/* The functions that make messages. */
static void test_messages(void **state) {
    (void)state;
    QsfErr err = { 0 };
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_err_set(&err, QSF_E_USAGE, "%s: %u layers\n%u rows", "x", 1u, 2u);
    assert_string_equal(err.msg, "x: 1 layer\n2 rows");
    qsf_strbuf_addf(&b, "%u models, ", 1u);
    qsf_strbuf_addf(&b, "%u models", 2u);
    assert_string_equal(qsf_strbuf_str(&b), "1 model, 2 models");
    qsf_strbuf_free(&b);
}

/* A format that is too long is used as it is. */
static void test_long(void **state) {
    (void)state;
    static char fmt[2 * QSF_PLURAL_FORMAT], out[4 * QSF_PLURAL_FORMAT];
    memset(fmt, 'x', sizeof fmt - 1);
    memcpy(fmt, "%u tokens ", 10);
    const char *volatile late = fmt; /* no literal */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    assert_int_equal(qsf_plural_snprintf(out, sizeof out, late, 1u), (int)sizeof fmt - 2);
#pragma GCC diagnostic pop
    assert_memory_equal(out, "1 tokens ", 9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nouns),     cmocka_unit_test(test_words_around),
        cmocka_unit_test(test_arguments), cmocka_unit_test(test_messages),
        cmocka_unit_test(test_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
