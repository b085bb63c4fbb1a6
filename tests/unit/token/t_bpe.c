/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Byte-level BPE vocabularies: merging by rank, whole pieces, bytes, special tokens. */
#include "tests/harness/tiny_vocab.h"

#include "src/token/chars.h"
#include "tests/harness/qsf_test.h"

#define G "\xC4\xA0" /* how a space is written */

static QsfLedger ledger;

enum { AB = 256, BC, ABC, SP_A, AA, AAAA, WHOLE, CTL, USER, CTL_PLAIN };

static void fill(QsfTestVocab *v, const char *pre) {
    qsf_tv_bpe(v);
    qsf_tv_add(v, "ab", 0, QSF_TOKEN_NORMAL);
    qsf_tv_add(v, "bc", 0, QSF_TOKEN_NORMAL);
    qsf_tv_add(v, "abc", 0, QSF_TOKEN_NORMAL);
    qsf_tv_add(v, G "a", 0, QSF_TOKEN_NORMAL);
    qsf_tv_add(v, "aa", 0, QSF_TOKEN_NORMAL);
    qsf_tv_add(v, "aaaa", 0, QSF_TOKEN_NORMAL);
    qsf_tv_add(v, G "whole", 0, QSF_TOKEN_NORMAL);
    qsf_tv_add(v, "<|x|>", 0, QSF_TOKEN_CONTROL);
    qsf_tv_add(v, "<u>", 0, QSF_TOKEN_USER);
    qsf_tv_add(v, "zz", 0, QSF_TOKEN_CONTROL);
    qsf_tv_merge(v, "b c");
    qsf_tv_merge(v, "a b");
    qsf_tv_merge(v, "a bc");
    qsf_tv_merge(v, G " a");
    qsf_tv_merge(v, "a a");
    qsf_tv_merge(v, "aa aa");
    qsf_tv_merge(v, "a b");       /* a duplicate: the first one counts */
    qsf_tv_merge(v, "q r");       /* the result is not a token */
    qsf_tv_merge(v, "nowhere b"); /* of something that is not a token */
    qsf_tv_merge(v, "z z");       /* the result is a control token */
    qsf_tv_merge(v, "ab");        /* not a merge */
    qsf_tv_merge(v, " ");
    qsf_tv_merge(v, "");
    qsf_gb_str(&v->gb, "tokenizer.ggml.pre", pre);
}

static QsfTokenizer *open_vocab(QsfTestVocab *v) {
    QsfErr e = { 0 };
    qsf_ledger_init(&ledger, 0);
    QsfTokenizer *t = qsf_tv_open(v, "gpt2", &ledger, &e);
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
    fill(&v, "gpt-2");
    QsfTokenizer *t = open_vocab(&v);
    QSF_TV_EXPECT(t, "", 0, -1);
    QSF_TV_EXPECT(t, "abc", 0, ABC); /* first b c, then a bc */
    QSF_TV_EXPECT(t, "ab", 0, AB);
    QSF_TV_EXPECT(t, "aab", 0, 'a', AB);
    QSF_TV_EXPECT(t, "aaaaaaa", 0, AAAA, AA, 'a');
    QSF_TV_EXPECT(t, "x a", 0, 'x', SP_A);
    QSF_TV_EXPECT(t, "qr", 0, 'q', 'r');
    QSF_TV_EXPECT(t, "a\nb", 0, 'a', '\n', 'b');
    QSF_TV_EXPECT(t, "\xC3\xA9\xFF\x80", 0, 0xC3, 0xA9, 0xFF, 0x80); /* ill-formed bytes too */
    QSF_TV_EXPECT(t, " whole", 0, ' ', 'w', 'h', 'o', 'l', 'e');
    close_vocab(t, &v);
}

static void test_whole_pieces(void **state) {
    (void)state;
    QsfTestVocab v = { 0 };
    fill(&v, "llama-bpe");
    QsfTokenizer *t = open_vocab(&v);
    QSF_TV_EXPECT(t, "x whole", 0, 'x', WHOLE);
    QSF_TV_EXPECT(t, "x wholes", 0, 'x', ' ', 'w', 'h', 'o', 'l', 'e', 's');
    close_vocab(t, &v);
}

static void test_special(void **state) {
    (void)state;
    QsfTestVocab v = { 0 };
    fill(&v, "llama-bpe");
    QsfTokenizer *t = open_vocab(&v);
    QSF_TV_EXPECT(t, "a<|x|>b<u>", QSF_TOK_SPECIAL, 'a', CTL, 'b', USER);
    QSF_TV_EXPECT(t, "a<|x|>b<u>", 0, 'a', '<', '|', 'x', '|', '>', 'b', USER);
    QSF_TV_EXPECT(t, "zz", QSF_TOK_SPECIAL, CTL_PLAIN);
    QSF_TV_EXPECT(t, "zz", 0, 'z', 'z');                   /* neither by a merge nor as a whole piece */
    QSF_TV_EXPECT(t, "a", QSF_TOK_BOS | QSF_TOK_EOS, 'a'); /* llama-bpe adds BOS, but there is none */
    close_vocab(t, &v);
}

static void test_missing_bytes(void **state) {
    (void)state;
    QsfTestVocab v = { 0 };
    qsf_tv_add(&v, "a", 0, QSF_TOKEN_NORMAL);
    qsf_tv_add(&v, "b", 0, QSF_TOKEN_NORMAL);
    QsfTokenizer *t = open_vocab(&v);
    QSF_TV_EXPECT(t, "aXb", 0, 0, 1);
    close_vocab(t, &v);
}

static void test_bytemap(void **state) {
    (void)state;
    bool seen[0x200] = { false };
    for (unsigned i = 0; i < 256; i++) {
        uint32_t cp = qsf_bytemap_cp((unsigned char)i);
        char byte = (char)i, text[2], back;
        assert_true(cp < 0x144 && !seen[cp]);
        seen[cp] = true;
        size_t n = qsf_bytemap_encode(&byte, 1, text);
        assert_int_equal(qsf_bytemap_decode(text, n, &back, 1), 1);
        assert_int_equal(back, byte);
    }
    /* Other characters of two bytes are copied. */
    for (uint32_t cp = 0x80; cp < 0x200; cp++) {
        const char text[2] = { (char)(0xC0 | cp >> 6), (char)(0x80 | (cp & 0x3F)) };
        char back[2];
        if (seen[cp]) continue;
        assert_int_equal(qsf_bytemap_decode(text, 2, back, 2), 2);
        assert_memory_equal(back, text, 2);
    }
    assert_int_equal(qsf_bytemap_cp(' '), 0x120);
    assert_int_equal(qsf_bytemap_cp('\n'), 0x10A);
    assert_int_equal(qsf_bytemap_cp(0x7F), 0x121);
    assert_int_equal(qsf_bytemap_cp(0xAD), 0x143);
    char out[8];
    /* does not encode a byte: not changed */
    assert_int_equal(qsf_bytemap_decode("\xE4\xB8\x80", 3, out, sizeof out), 3);
    assert_memory_equal(out, "\xE4\xB8\x80", 3);
}

static uint32_t next_random(uint64_t *s) {
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*s >> 33);
}

static void test_round_trip(void **state) {
    (void)state;
    static const char *const pres[] = {
        "default", "gpt-2", "llama-bpe", "qwen2", "deepseek-llm", "tiny_aya", "youtu",
    };
    for (size_t p = 0; p < sizeof pres / sizeof *pres; p++) {
        QsfTestVocab v = { 0 };
        fill(&v, pres[p]);
        QsfTokenizer *t = open_vocab(&v);
        uint64_t seed = 11 + p;
        for (int round = 0; round < 1000; round++) {
            char text[64];
            size_t len = next_random(&seed) % sizeof text, n;
            QsfIds ids = { 0 };
            for (size_t i = 0; i < len; i++) {
                uint32_t r = next_random(&seed);
                text[i] = (char)(r % 4 == 0 ? r >> 8 : (uint32_t) "abc <u>1\n'"[(r >> 8) % 10]);
            }
            assert_int_equal(qsf_tokenizer_encode(t, text, len, QSF_TOK_SPECIAL, &ids, NULL), QSF_OK);
            char *back = qsf_tv_detok(t, ids.data, ids.n, true, true, &n);
            assert_int_equal(n, len);
            if (len > 0) assert_memory_equal(back, text, len);
            free(back);
            qsf_ids_free(&ids);
        }
        close_vocab(t, &v);
    }
}

/* Pieces as long as the text: neither merging nor the expressions may take quadratic time. */
static void test_long_pieces(void **state) {
    (void)state;
    enum { N = 300000 };
    static const char *const pres[] = { "llama-bpe", "default", "tiny_aya", "gpt-4o" };
    static const char fills[] = "a 7\n.\xFF";
    char *text = malloc(N);
    assert_non_null(text);
    for (size_t p = 0; p < sizeof pres / sizeof *pres; p++) {
        QsfTestVocab v = { 0 };
        fill(&v, pres[p]);
        QsfTokenizer *t = open_vocab(&v);
        for (size_t f = 0; f + 1 < sizeof fills; f++) {
            QsfIds ids = { 0 };
            memset(text, fills[f], N);
            text[N - 1] = 'x';
            const uint64_t start = qsf_test_cpu_ns();
            assert_int_equal(qsf_tokenizer_encode(t, text, N, 0, &ids, NULL), QSF_OK);
            assert_true(qsf_test_cpu_ns() - start < 20000000000u);
            assert_true(ids.n >= N / 4);
            qsf_ids_free(&ids);
        }
        close_vocab(t, &v);
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merges),      cmocka_unit_test(test_whole_pieces),
        cmocka_unit_test(test_special),     cmocka_unit_test(test_missing_bytes),
        cmocka_unit_test(test_bytemap),     cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_long_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
