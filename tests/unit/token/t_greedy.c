/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Greedy vocabularies: the longest token wins, texts with escapes, bytes without a token. */
#include "src/token/greedy.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/tiny_vocab.h"

enum { END, A, AB, ABCD, B, NUL, NEWLINE, QUOTE, E_ACUTE, HIGH, BACKSLASH };

static const char *const texts[] = { "a",   "ab",  "abcd",     "b",     "\\x00",
                                     "\\n", "\\'", "\xC3\xA9", "\\xff", "\\\\" };

static void test_unescape(void **state) {
    static const struct {
        const char *in, *out;
        size_t len;
    } rows[] = {
        { "plain", "plain", 5 }, { "\\t\\n\\r", "\t\n\r", 3 },  { "\\x41\\x7a\\xFF", "Az\xFF", 3 },
        { "\\x00a", "\0a", 2 },  { "\\\"\\'\\\\", "\"'\\", 3 }, { "\\", "\\", 1 },
        { "\\x", "x", 1 },       { "\\x4", "x4", 2 },           { "\\xg0", "xg0", 3 },
        { "", "", 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[32];
        snprintf(text, sizeof text, "%s", rows[i].in);
        assert_int_equal(qsf_greedy_unescape(text, strlen(rows[i].in)), rows[i].len);
        assert_memory_equal(text, rows[i].out, rows[i].len);
    }
}

static void test_longest(void **state) {
    QsfLedger ledger;
    QsfTestVocab v = { 0 };
    QsfErr err = { 0 };
    (void)state;
    qsf_ledger_init(&ledger, 0);
    qsf_tv_add(&v, "<s>", 0, QSF_TOKEN_CONTROL);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) qsf_tv_add(&v, texts[i], 0, QSF_TOKEN_NORMAL);
    QsfTokenizer *t = qsf_tv_open(&v, "rwkv", &ledger, &err);
    qsf_test_expect_ok(err.code, &err);
    QSF_TV_EXPECT(t, "", 0, -1);
    QSF_TV_EXPECT(t, "abcd", 0, ABCD);
    QSF_TV_EXPECT(t, "abc", 0, AB); /* c has no token */
    QSF_TV_EXPECT(t, "aab\nb", 0, A, AB, NEWLINE, B);
    QSF_TV_EXPECT(t, "\\'\xC3\xA9\xFF", 0, BACKSLASH, QUOTE, E_ACUTE, HIGH);
    QSF_TV_EXPECT(t, "<s>a", 0, A); /* text does not become a control token */
    QSF_TV_EXPECT(t, "<s>a", QSF_TOK_SPECIAL, END, A);
    char piece[8] = "?";
    assert_int_equal(qsf_tokenizer_piece(t, NUL, false, piece, sizeof piece), 1);
    assert_int_equal(piece[0], '\0');
    assert_int_equal(qsf_tokenizer_piece(t, NEWLINE, false, piece, sizeof piece), 1);
    assert_int_equal(piece[0], '\n');
    qsf_tokenizer_close(t);
    qsf_tv_free(&v);
    assert_int_equal(ledger.total, 0);
    qsf_ledger_destroy(&ledger);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unescape),
        cmocka_unit_test(test_longest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
