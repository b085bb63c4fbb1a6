/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SentencePiece vocabularies: merging by score, byte fallback, space prefix, special tokens. */
#include "tests/harness/tiny_vocab.h"

#include "tests/harness/qsf_test.h"

#define SP      "\xE2\x96\x81"
#define BYTE(c) (3 + (c))

static QsfLedger ledger;

/* Ids of the tokens after the 259 of qsf_tv_spm. */
enum { SPACE = 259, A, B, C, X, AB, BC, SP_A, SP_AB, AA, SP2, CTL_PART, CTL, USER, USER_LONG, EURO };

static void fill(QsfTestVocab *v) {
    qsf_tv_spm(v);
    qsf_tv_add(v, SP, -9, QSF_TOKEN_NORMAL);
    qsf_tv_add(v, "a", -9, QSF_TOKEN_NORMAL);
    qsf_tv_add(v, "b", -9, QSF_TOKEN_NORMAL);
    qsf_tv_add(v, "c", -9, QSF_TOKEN_NORMAL);
    qsf_tv_add(v, "x", -9, QSF_TOKEN_NORMAL);
    qsf_tv_add(v, "ab", -3, QSF_TOKEN_NORMAL);
    qsf_tv_add(v, "bc", -2, QSF_TOKEN_NORMAL);
    qsf_tv_add(v, SP "a", -4, QSF_TOKEN_NORMAL);
    qsf_tv_add(v, SP "ab", -1, QSF_TOKEN_NORMAL);
    qsf_tv_add(v, "aa", -5, QSF_TOKEN_NORMAL);
    qsf_tv_add(v, SP SP, -6, QSF_TOKEN_NORMAL);
    qsf_tv_add(v, "[x", -1, QSF_TOKEN_NORMAL);
    qsf_tv_add(v, "[x]", 0, QSF_TOKEN_CONTROL);
    qsf_tv_add(v, "xx", 0, QSF_TOKEN_USER);
    qsf_tv_add(v, "xxcxx", 0, QSF_TOKEN_USER);
    qsf_tv_add(v, "\xE2\x82\xAC", -9, QSF_TOKEN_NORMAL);
}

static QsfTokenizer *open_vocab(QsfTestVocab *v) {
    QsfErr e = { 0 };
    qsf_ledger_init(&ledger, 0);
    QsfTokenizer *t = qsf_tv_open(v, "llama", &ledger, &e);
    qsf_test_expect_ok(e.code, &e);
    return t;
}

static void close_vocab(QsfTokenizer *t, QsfTestVocab *v) {
    qsf_tokenizer_close(t);
    qsf_tv_free(v);
    assert_true(ledger.total == 0);
    qsf_ledger_destroy(&ledger);
}

static void test_merges(void **state) {
    (void)state;
    QsfTestVocab v = { 0 };
    fill(&v);
    QsfTokenizer *t = open_vocab(&v);
    QSF_TV_EXPECT(t, "", 0, -1);
    QSF_TV_EXPECT(t, "abc", QSF_TOK_NO_PREFIX, A, BC); /* the better score wins, not the first pair */
    QSF_TV_EXPECT(t, "aaa", QSF_TOK_NO_PREFIX, AA, A); /* leftmost on a tie */
    QSF_TV_EXPECT(t, "ab", 0, SP_AB);
    QSF_TV_EXPECT(t, "abc", 0, SP_A, BC);
    QSF_TV_EXPECT(t, "a ab  b", 0, SP_A, SP_AB, SP2, B);
    QSF_TV_EXPECT(t, " a", 0, SPACE, SP_A);
    QSF_TV_EXPECT(t, " ", 0, SP2);
    QSF_TV_EXPECT(t, SP "a", QSF_TOK_NO_PREFIX, SP_A); /* the character itself is treated as a space too */
    QSF_TV_EXPECT(t, "\xE2\x82\xAC", QSF_TOK_NO_PREFIX, EURO);
    close_vocab(t, &v);
}

static void test_bytes(void **state) {
    (void)state;
    QsfTestVocab v = { 0 };
    fill(&v);
    QsfTokenizer *t = open_vocab(&v);
    QSF_TV_EXPECT(t, "a\xC3\xA9", QSF_TOK_NO_PREFIX, A, BYTE(0xC3), BYTE(0xA9));
    QSF_TV_EXPECT(t, "\n", QSF_TOK_NO_PREFIX, BYTE('\n'));
    QSF_TV_EXPECT(t, "\xE2\x82", QSF_TOK_NO_PREFIX, BYTE(0xE2), BYTE(0x82)); /* truncated */
    QSF_TV_EXPECT(t, "<0x41>", QSF_TOK_SPECIAL | QSF_TOK_NO_PREFIX, BYTE('<'), BYTE('0'), X, BYTE('4'),
                  BYTE('1'), BYTE('>'));
    close_vocab(t, &v);
    /* without byte tokens: the byte itself as a token, otherwise the unknown token */
    qsf_tv_add(&v, "<unk>", 0, QSF_TOKEN_UNKNOWN);
    qsf_tv_add(&v, "<s>", 0, QSF_TOKEN_CONTROL);
    qsf_tv_add(&v, "</s>", 0, QSF_TOKEN_CONTROL);
    qsf_tv_add(&v, "q", 0, QSF_TOKEN_NORMAL);
    t = open_vocab(&v);
    QSF_TV_EXPECT(t, "qz\xC3\xA9", QSF_TOK_NO_PREFIX, 3, 0, 0, 0);
    close_vocab(t, &v);
}

static void test_special(void **state) {
    (void)state;
    QsfTestVocab v = { 0 };
    fill(&v);
    QsfTokenizer *t = open_vocab(&v);
    QSF_TV_EXPECT(t, "a[x]b", QSF_TOK_SPECIAL, SP_A, CTL, SPACE, B); /* followed by a new prefix */
    QSF_TV_EXPECT(t, "[x]b", QSF_TOK_SPECIAL | QSF_TOK_NO_PREFIX, CTL, SPACE, B);
    /* typed text never becomes a control token, with or without merges */
    QSF_TV_EXPECT(t, "[x]", QSF_TOK_NO_PREFIX, CTL_PART, BYTE(']'));
    QSF_TV_EXPECT(t, "<s>", QSF_TOK_NO_PREFIX, BYTE('<'), BYTE('s'), BYTE('>'));
    QSF_TV_EXPECT(t, "<s><unk>", QSF_TOK_SPECIAL, 1, 0);
    QSF_TV_EXPECT(t, "axx", 0, SP_A, USER);                             /* user-defined ones always count */
    QSF_TV_EXPECT(t, "xxcxxx", QSF_TOK_NO_PREFIX, USER_LONG, SPACE, X); /* longest first */
    QSF_TV_EXPECT(t, "xxx", QSF_TOK_NO_PREFIX, USER, SPACE, X);
    close_vocab(t, &v);
}

/* Tokens are searched longest first over the whole text, not from left to right. */
static void test_overlap(void **state) {
    (void)state;
    QsfTestVocab v = { 0 };
    qsf_tv_spm(&v);
    int32_t abc = qsf_tv_add(&v, "ABC", 0, QSF_TOKEN_USER), ab = qsf_tv_add(&v, "AB", 0, QSF_TOKEN_USER);
    int32_t bcde = qsf_tv_add(&v, "BCDE", 0, QSF_TOKEN_USER), ba = qsf_tv_add(&v, "BA", 0, QSF_TOKEN_USER);
    int32_t ctl = qsf_tv_add(&v, "CDEFG", 0, QSF_TOKEN_CONTROL);
    qsf_gb_bool(&v.gb, "tokenizer.ggml.add_space_prefix", false);
    QsfTokenizer *t = open_vocab(&v);
    QSF_TV_EXPECT(t, "ABCDEFG", 0, BYTE('A'), bcde, BYTE('F'), BYTE('G'));
    QSF_TV_EXPECT(t, "ABCDEFG", QSF_TOK_SPECIAL, ab, ctl);
    QSF_TV_EXPECT(t, "ABCDE", 0, BYTE('A'), bcde);
    QSF_TV_EXPECT(t, "ABCD", 0, abc, BYTE('D'));
    QSF_TV_EXPECT(t, "ABAB", 0, ab, ab); /* equal lengths: the lower id is searched first */
    QSF_TV_EXPECT(t, "BABA", 0, BYTE('B'), ab, BYTE('A'));
    QSF_TV_EXPECT(t, "BA", 0, ba);
    close_vocab(t, &v);
}

static void test_phi3_strip(void **state) {
    (void)state;
    for (int renamed = 0; renamed < 2; renamed++) {
        QsfTestVocab v = { 0 };
        qsf_tv_spm(&v);
        int32_t user = qsf_tv_add(&v, "<|user|>", 0, QSF_TOKEN_CONTROL);
        int32_t sp = qsf_tv_add(&v, SP, -1, QSF_TOKEN_NORMAL), x = qsf_tv_add(&v, "x", -1, QSF_TOKEN_NORMAL);
        qsf_gb_str(&v.gb, "general.name", renamed ? "other" : "My Phi-3 Mini");
        QsfTokenizer *t = open_vocab(&v);
        if (renamed) {
            QSF_TV_EXPECT(t, "<|user|> \nx", QSF_TOK_SPECIAL, user, sp, sp, BYTE('\n'), x);
        } else {
            QSF_TV_EXPECT(t, "<|user|> \nx", QSF_TOK_SPECIAL, user, sp, x);
            QSF_TV_EXPECT(t, "<|user|> \n<s> x", QSF_TOK_SPECIAL, user, 1, sp, sp, x);
            QSF_TV_EXPECT(t, "</s>\t\v ", QSF_TOK_SPECIAL, 2);
        }
        close_vocab(t, &v);
    }
}

/* Tokens that continue after a space: the text must not be split into words first. */
static void test_multiword(void **state) {
    (void)state;
    QsfTestVocab v = { 0 };
    fill(&v);
    qsf_tv_add(&v, "b" SP, -0.5f, QSF_TOKEN_NORMAL);
    int32_t phrase = qsf_tv_add(&v, "b" SP "c", -0.25f, QSF_TOKEN_NORMAL);
    QsfTokenizer *t = open_vocab(&v);
    QSF_TV_EXPECT(t, "ab c", 0, SP_A, phrase);
    close_vocab(t, &v);
}

static void test_flags(void **state) {
    (void)state;
    QsfTestVocab v = { 0 };
    fill(&v);
    QsfTokenizer *t = open_vocab(&v);
    assert_true(qsf_tokenizer_adds_bos(t));
    assert_true(qsf_tokenizer_is_eog(t, 2));
    QSF_TV_EXPECT(t, "a", QSF_TOK_BOS | QSF_TOK_EOS, 1, SP_A);
    close_vocab(t, &v);
    fill(&v);
    qsf_gb_bool(&v.gb, "tokenizer.ggml.add_bos_token", false);
    qsf_gb_bool(&v.gb, "tokenizer.ggml.add_eos_token", true);
    qsf_gb_bool(&v.gb, "tokenizer.ggml.add_space_prefix", false);
    qsf_gb_u32(&v.gb, "tokenizer.ggml.eos_token_id", CTL);
    t = open_vocab(&v);
    QSF_TV_EXPECT(t, "a", QSF_TOK_BOS | QSF_TOK_EOS, A, CTL);
    close_vocab(t, &v);
}

static uint32_t next_random(uint64_t *s) {
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*s >> 33);
}

/* Any bytes are restored, except U+2581, which becomes a space, and user-defined tokens, after which the
 * reference adds a space that it does not remove again. */
static void test_round_trip(void **state) {
    (void)state;
    static const char *const parts[] = {
        "a", "b", "c", "ab", " ", "  ", "\n", "y", "\xE2\x82\xAC", "\xC3\xA9", "\xFF", "\xE2\x82", "[x]", "'"
    };
    QsfTestVocab v = { 0 };
    fill(&v);
    QsfTokenizer *t = open_vocab(&v);
    uint64_t seed = 7;
    for (int round = 0; round < 2000; round++) {
        QsfStrbuf text = QSF_STRBUF_INIT;
        QsfIds ids = { 0 };
        size_t len;
        for (uint32_t n = next_random(&seed) % 20; n > 0; n--) {
            qsf_strbuf_adds(&text, parts[next_random(&seed) % (sizeof parts / sizeof *parts)]);
        }
        assert_int_equal(qsf_tokenizer_encode(t, qsf_strbuf_str(&text), text.len, 0, &ids, NULL), QSF_OK);
        char *back = qsf_tv_detok(t, ids.data, ids.n, true, false, &len);
        assert_int_equal(len, text.len);
        if (len > 0) assert_memory_equal(back, text.data, len);
        free(back);
        qsf_ids_free(&ids);
        qsf_strbuf_free(&text);
    }
    close_vocab(t, &v);
}

static void test_long_word(void **state) {
    (void)state;
    enum { N = 300000 };
    QsfTestVocab v = { 0 };
    fill(&v);
    QsfTokenizer *t = open_vocab(&v);
    char *text = malloc(N);
    QsfIds ids = { 0 };
    assert_non_null(text);
    memset(text, 'a', N);
    const uint64_t start = qsf_test_cpu_ns();
    assert_int_equal(qsf_tokenizer_encode(t, text, N, QSF_TOK_NO_PREFIX, &ids, NULL), QSF_OK);
    /* quadratic time would be minutes */
    assert_true(qsf_test_cpu_ns() - start < 20000000000u);
    assert_int_equal(ids.n, N / 2);
    qsf_ids_free(&ids);
    free(text);
    close_vocab(t, &v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merges),  cmocka_unit_test(test_bytes),      cmocka_unit_test(test_special),
        cmocka_unit_test(test_overlap), cmocka_unit_test(test_phi3_strip), cmocka_unit_test(test_multiword),
        cmocka_unit_test(test_flags),   cmocka_unit_test(test_round_trip), cmocka_unit_test(test_long_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
