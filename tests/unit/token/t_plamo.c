/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Vocabularies of PLaMo: the best sum of rounded scores, ties, characters that become bytes, damage. */
#include <math.h>

#include "tests/harness/qsf_test.h"
#include "tests/harness/tiny_vocab.h"

enum { BYTE = 3, A = 259, B, C, AB, BC, ABC, HIDDEN, MARK, NO_NUMBER, NEAR_D, D };

static QsfLedger ledger;

static void fill(QsfTestVocab *v) {
    static const struct {
        const char *text;
        float score;
    } tokens[] = {
        { "a", -1 },     { "b", -1 },         { "c", -2 },         { "ab", -2 },
        { "bc", -2.5f }, { "abc", -5 },       { "hidden", -3000 }, { "\xE2\x96\x81", -1 },
        { "x", NAN },    { "de", -2.00004f }, { "d", -1 },         { "e", -1 },
    };
    qsf_tv_spm(v);
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        qsf_tv_add(v, tokens[i].text, tokens[i].score, QSF_TOKEN_NORMAL);
}

static QsfTokenizer *open_tokenizer(QsfTestVocab *v) {
    QsfErr err = { 0 };
    qsf_ledger_init(&ledger, 0);
    fill(v);
    QsfTokenizer *t = qsf_tv_open(v, "plamo2", &ledger, &err);
    qsf_test_expect_ok(err.code, &err);
    return t;
}

static void close_tokenizer(QsfTokenizer *t, QsfTestVocab *v) {
    qsf_tokenizer_close(t);
    qsf_tv_free(v);
    assert_int_equal(ledger.total, 0);
    qsf_ledger_destroy(&ledger);
}

static void test_best_sum(void **state) {
    QsfTestVocab v = { 0 };
    (void)state;
    QsfTokenizer *t = open_tokenizer(&v);
    QSF_TV_EXPECT(t, "", 0, -1);
    QSF_TV_EXPECT(t, "abc", 0, A, BC); /* -3.5 beats ab c (-4) and abc (-5) */
    QSF_TV_EXPECT(t, "ab", 0, AB);     /* a b has the same sum: the longest wins */
    QSF_TV_EXPECT(t, "de", 0, NEAR_D); /* -2.00004 is rounded to -2 */
    QSF_TV_EXPECT(t, "aab", 0, A, AB);
    QSF_TV_EXPECT(t,
                  "\xEF\xBB\xBF"
                  "a",
                  0, A); /* a byte order mark at the start is dropped */
    close_tokenizer(t, &v);
}

static void test_bytes(void **state) {
    QsfTestVocab v = { 0 };
    char piece[8] = "";
    (void)state;
    QsfTokenizer *t = open_tokenizer(&v);
    QSF_TV_EXPECT(t, "a\xC3\xA9", 0, A, BYTE + 0xC3, BYTE + 0xA9);
    QSF_TV_EXPECT(t,
                  "\xFF"
                  "a",
                  0, BYTE + 0xFF, A);     /* not UTF-8 */
    QSF_TV_EXPECT(t, "x", 0, BYTE + 'x'); /* its score is not a number */
    QSF_TV_EXPECT(t, "</s>a", 0, BYTE + '<', BYTE + '/', BYTE + 's', BYTE + '>', A);
    QSF_TV_EXPECT(t, "</s>a", QSF_TOK_SPECIAL, 2, A);
    QSF_TV_EXPECT(t, "hid", 0, BYTE + 'h', BYTE + 'i', D);
    assert_int_equal(qsf_tokenizer_piece(t, MARK, false, piece, sizeof piece), 3); /* not a space */
    assert_int_equal(qsf_tokenizer_piece(t, BYTE + 0xC3, false, piece, sizeof piece), 1);
    assert_int_equal((unsigned char)piece[0], 0xC3);
    close_tokenizer(t, &v);
}

static void test_missing_byte(void **state) {
    QsfTestVocab v = { 0 };
    QsfErr err = { 0 };
    (void)state;
    qsf_ledger_init(&ledger, 0);
    fill(&v);
    v.types[BYTE + 7] = QSF_TOKEN_NORMAL;
    assert_null(qsf_tv_open(&v, "plamo2", &ledger, &err));
    qsf_test_expect_err(&err, QSF_E_MODEL, "no token <0x07>");
    close_tokenizer(NULL, &v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best_sum),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_missing_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
