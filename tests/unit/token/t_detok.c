/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Streaming detokenizer: whole UTF-8 sequences only, the first space, special tokens, cleaned up spaces. */
#include "tests/harness/tiny_vocab.h"

#include "src/base/utf8.h"
#include "tests/harness/qsf_test.h"

#define SP      "\xE2\x96\x81"
#define BYTE(c) (3 + (c))

static QsfLedger ledger;

static QsfTokenizer *open_vocab(QsfTestVocab *v, const char *model) {
    QsfErr e = { 0 };
    qsf_ledger_init(&ledger, 0);
    QsfTokenizer *t = qsf_tv_open(v, model, &ledger, &e);
    qsf_test_expect_ok(e.code, &e);
    return t;
}

static void close_vocab(QsfTokenizer *t, QsfTestVocab *v) {
    qsf_tokenizer_close(t);
    qsf_tv_free(v);
    qsf_ledger_destroy(&ledger);
}

static void expect_text(const QsfTokenizer *t, const int32_t *ids, size_t n, bool show, bool continues,
                        const char *want) {
    size_t len;
    char *got = qsf_tv_detok(t, ids, n, show, continues, &len);
    assert_int_equal(len, strlen(want));
    if (len > 0) assert_memory_equal(got, want, len);
    free(got);
}

static void expect_clean(const QsfTokenizer *t, const int32_t *ids, size_t n, const char *want) {
    size_t len;
    char *got = qsf_tv_detok_clean(t, ids, n, &len);
    assert_int_equal(len, strlen(want));
    if (len > 0) assert_memory_equal(got, want, len);
    free(got);
}

#define IDS(...) (const int32_t[]){ __VA_ARGS__ }, sizeof((const int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t)

static void test_pieces(void **state) {
    (void)state;
    QsfTestVocab v = { 0 };
    char dst[16];
    qsf_tv_spm(&v);
    int32_t two = qsf_tv_add(&v, SP "a" SP "b", 0, QSF_TOKEN_NORMAL);
    int32_t user = qsf_tv_add(&v, "<u" SP ">", 0, QSF_TOKEN_USER);
    int32_t unused = qsf_tv_add(&v, "nothing", 0, QSF_TOKEN_UNUSED);
    QsfTokenizer *t = open_vocab(&v, "llama");
    assert_int_equal(qsf_tokenizer_piece(t, two, false, dst, sizeof dst), 4);
    assert_memory_equal(dst, " a b", 4);
    memset(dst, '#', sizeof dst);
    assert_int_equal(qsf_tokenizer_piece(t, two, false, dst, 2), 4); /* truncated, with the full length */
    assert_memory_equal(dst, " a##", 4);
    assert_int_equal(qsf_tokenizer_piece(t, two, false, NULL, 0), 4);
    assert_int_equal(qsf_tokenizer_piece(t, BYTE(0x0A), false, dst, sizeof dst), 1);
    assert_int_equal(dst[0], '\n');
    assert_int_equal(qsf_tokenizer_piece(t, user, false, dst, sizeof dst),
                     4); /* runs of spaces have this type */
    assert_memory_equal(dst, "<u >", 4);
    QSF_TV_EXPECT(t, "<u" SP ">", QSF_TOK_NO_PREFIX, user); /* its text for matching stays */
    assert_int_equal(qsf_tokenizer_piece(t, 1, false, dst, sizeof dst), 0);
    assert_int_equal(qsf_tokenizer_piece(t, 1, true, dst, sizeof dst), 3);
    assert_int_equal(qsf_tokenizer_piece(t, 0, false, dst, sizeof dst), 0);
    assert_int_equal(qsf_tokenizer_piece(t, unused, true, dst, sizeof dst), 0);
    close_vocab(t, &v);
}

static void test_first_space(void **state) {
    (void)state;
    QsfTestVocab v = { 0 };
    qsf_tv_spm(&v);
    int32_t a = qsf_tv_add(&v, SP "a", 0, QSF_TOKEN_NORMAL), sp2 = qsf_tv_add(&v, SP SP, 0, QSF_TOKEN_NORMAL);
    QsfTokenizer *t = open_vocab(&v, "llama");
    expect_text(t, IDS(a, a), false, false, "a a");
    expect_text(t, IDS(a, a), false, true, " a a");
    expect_text(t, IDS(sp2, a), false, false, "  a");
    expect_text(t, IDS(1, a), true, false, "<s> a");
    expect_text(t, IDS(1, a), false, false, " a"); /* the hidden token was at the start of the text */
    expect_text(t, IDS(-1, 100000, 2), false, false, "");
    close_vocab(t, &v);
    qsf_tv_spm(&v);
    a = qsf_tv_add(&v, SP "a", 0, QSF_TOKEN_NORMAL);
    qsf_gb_bool(&v.gb, "tokenizer.ggml.add_space_prefix", false);
    t = open_vocab(&v, "llama");
    expect_text(t, IDS(a, a), false, false, " a a");
    close_vocab(t, &v);
}

/* One byte per token: nothing is returned before its sequence is complete, and no more is held than
 * needed. */
static void test_whole_sequences(void **state) {
    static const struct {
        const char *in;
        const char *out[6]; /* after each byte, then at the end */
    } cases[] = {
        { "\xC3\xA9", { "", "\xC3\xA9", "" } },
        { "\xF0\x9F\x98\x80!", { "", "", "", "\xF0\x9F\x98\x80", "!", "" } },
        { "\xE2\x82x", { "", "", "\xE2\x82x", "" } },
        { "\xC3\xC3\xA9", { "", "\xC3", "\xC3\xA9", "" } },
        { "\xFF\x80", { "\xFF", "\x80", "" } },
        { "\xED\xA0\x80", { "", "\xED\xA0", "\x80", "" } }, /* a surrogate cannot be completed */
        { "\xF0\x9F", { "", "", "\xF0\x9F" } },
    };
    (void)state;
    QsfTestVocab v = { 0 };
    qsf_tv_spm(&v);
    QsfTokenizer *t = open_vocab(&v, "llama");
    char *buf = malloc(QSF_PIECE_MAX + 8);
    assert_non_null(buf);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        QsfDetok d;
        size_t n, len = strlen(cases[i].in);
        qsf_detok_init(&d, t, false, false);
        for (size_t k = 0; k <= len; k++) {
            n = k < len ? qsf_detok_feed(&d, BYTE((unsigned char)cases[i].in[k]), buf, QSF_PIECE_MAX + 8)
                        : qsf_detok_flush(&d, buf, QSF_PIECE_MAX + 8);
            assert_int_equal(n, strlen(cases[i].out[k]));
            if (n > 0) assert_memory_equal(buf, cases[i].out[k], n);
        }
    }
    free(buf);
    close_vocab(t, &v);
}

/* The result of the reference's three passes over a whole text, written out again: each pass drops characters
 * depending on their neighbours in the text before that pass. */
static void tidy_whole(char *s) {
    char in[256];
    size_t n, out;
    strcpy(in, s);
    n = strlen(in);
    out = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(in[i] == ' ' && i + 1 < n && strchr("?!.,", in[i + 1]) != NULL)) s[out++] = in[i];
    }
    s[out] = '\0';
    strcpy(in, s);
    n = strlen(in);
    out = 0;
    for (size_t i = 0; i < n; i++) {
        if (n - i >= 3 && memcmp(in + i, " ' ", 3) == 0) {
            s[out++] = '\'';
            i += 2;
        } else {
            s[out++] = in[i];
        }
    }
    s[out] = '\0';
    strcpy(in, s);
    n = strlen(in);
    out = 0;
    for (size_t i = 0; i < n; i++) {
        bool drop = in[i] == ' ' && in[i + 1] == '\'' &&
                    (in[i + 2] == 's' || in[i + 2] == 'm' ||
                     ((in[i + 2] == 'r' || in[i + 2] == 'v') && in[i + 3] == 'e'));
        if (!drop) s[out++] = in[i];
    }
    s[out] = '\0';
}

static void test_tidy(void **state) {
    static const struct {
        const char *in, *out;
    } cases[] = {
        { "a , b . c ! d ?", "a, b. c! d?" },
        { "a  .", "a ." },
        { " .", "." },
        { "it 's I 'm", "it's I'm" },
        { "they 're we 've", "they're we've" },
        { "don 't he 'd", "don 't he 'd" },
        { "a ' b", "a'b" },
        { "x 'll 'r", "x 'll 'r" },
        { "a ' ' b", "a'' b" },
        { "end ", "end " },
        { "end '", "end '" },
        { "end 'v", "end 'v" },
        { " 's", "'s" },
        { "a ' .", "a '." },
    };
    (void)state;
    QsfTestVocab v = { 0 };
    qsf_tv_bpe(&v);
    qsf_gb_str(&v.gb, "tokenizer.ggml.pre", "gpt-2");
    QsfTokenizer *t = open_vocab(&v, "gpt2");
    int32_t ids[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = strlen(cases[i].in);
        for (size_t k = 0; k < n; k++) ids[k] = (unsigned char)cases[i].in[k];
        expect_clean(t, ids, n, cases[i].out);
        expect_text(t, ids, n, false, false, cases[i].in); /* an answer is never changed */
        expect_text(t, ids, n, false, true, cases[i].in);
    }
    uint64_t seed = 3;
    for (int round = 0; round < 20000; round++) {
        char text[256];
        size_t n = 0;
        for (; n < (size_t)(round % 40); n++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[n] = "    '''.,?!smreva\n"[(seed >> 33) % 18];
            ids[n] = (unsigned char)text[n];
        }
        text[n] = '\0';
        tidy_whole(text);
        expect_clean(t, ids, n, text);
    }
    close_vocab(t, &v);
}

/* Every id of a random stream: the output so far is always well-formed if the bytes are. */
static void test_stream_is_valid(void **state) {
    static const char text[] = "h\xC3\xA9llo \xE4\xB8\xAD\xE6\x96\x87 , \xF0\x9F\x98\x80 's \xE2\x82\xAC .";
    (void)state;
    QsfTestVocab v = { 0 };
    qsf_tv_bpe(&v);
    QsfTokenizer *t = open_vocab(&v, "gpt2");
    char *buf = malloc(QSF_PIECE_MAX + 8);
    assert_non_null(buf);
    for (int continues = 0; continues < 2; continues++) {
        QsfDetok d;
        qsf_detok_init(&d, t, false, continues);
        for (size_t i = 0; i < sizeof text - 1; i++) {
            size_t n = qsf_detok_feed(&d, (unsigned char)text[i], buf, QSF_PIECE_MAX + 8);
            assert_true(qsf_utf8_valid(buf, n));
        }
        assert_true(qsf_utf8_valid(buf, qsf_detok_flush(&d, buf, QSF_PIECE_MAX + 8)));
        assert_int_equal(qsf_detok_flush(&d, buf, QSF_PIECE_MAX + 8), 0);
    }
    free(buf);
    close_vocab(t, &v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),          cmocka_unit_test(test_first_space),
        cmocka_unit_test(test_whole_sequences), cmocka_unit_test(test_tidy),
        cmocka_unit_test(test_stream_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
