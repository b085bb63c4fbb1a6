/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Unigram vocabularies: the best sum of scores, text without a token, white space, the compiled normalizer,
 * damage. */
#include "tests/harness/tiny_vocab.h"

#include <math.h>
#include <time.h>

#include "tests/harness/qsf_test.h"

#define SP "\xE2\x96\x81"

static QsfLedger ledger;

enum { PAD, END, UNK, SPACE, SP_A, A, B, AB, ABC, C, E_ACUTE, SP_AB, BCD, D, LOST, FI, NAN_TOKEN };

static void fill(QsfTestVocab *v) {
    static const struct {
        const char *text;
        float score;
        QsfTokenType type;
    } tokens[] = {
        { "<pad>", 0, QSF_TOKEN_CONTROL },    { "</s>", 0, QSF_TOKEN_CONTROL },
        { "<unk>", 0, QSF_TOKEN_UNKNOWN },    { SP, -3, QSF_TOKEN_NORMAL },
        { SP "a", -4, QSF_TOKEN_NORMAL },     { "a", -2, QSF_TOKEN_NORMAL },
        { "b", -2, QSF_TOKEN_NORMAL },        { "ab", -3, QSF_TOKEN_NORMAL },
        { "abc", -9, QSF_TOKEN_NORMAL },      { "c", -5, QSF_TOKEN_NORMAL },
        { "\xC3\xA9", -2, QSF_TOKEN_NORMAL }, { SP "ab", -5.5f, QSF_TOKEN_NORMAL },
        { "bcd", -1, QSF_TOKEN_NORMAL },      { "d", -1, QSF_TOKEN_NORMAL },
        { "xy", -1, QSF_TOKEN_UNUSED },       { "fi", -1, QSF_TOKEN_NORMAL },
        { "q", NAN, QSF_TOKEN_NORMAL },
    };
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        qsf_tv_add(v, tokens[i].text, tokens[i].score, tokens[i].type);
}

static QsfTokenizer *open_t5(QsfTestVocab *v) {
    QsfErr e = { 0 };
    qsf_ledger_init(&ledger, 0);
    QsfTokenizer *t = qsf_tv_open(v, "t5", &ledger, &e);
    qsf_test_expect_ok(e.code, &e);
    assert_non_null(t);
    return t;
}

static void close_t5(QsfTokenizer *t, QsfTestVocab *v) {
    qsf_tokenizer_close(t);
    qsf_tv_free(v);
    assert_true(ledger.total == 0);
    qsf_ledger_destroy(&ledger);
}

static void test_scores(void **state) {
    (void)state;
    QsfTestVocab v = { 0 };
    fill(&v);
    QsfTokenizer *t = open_t5(&v);
    QSF_TV_EXPECT(t, "", 0, -1);
    QSF_TV_EXPECT(t, "abc", QSF_TOK_NO_PREFIX, AB, C);   /* -8 beats -9 */
    QSF_TV_EXPECT(t, "abcd", QSF_TOK_NO_PREFIX, A, BCD); /* -3 beats ab c d */
    QSF_TV_EXPECT(t, "ab", 0, SP_AB);                    /* -5.5 beats -6 */
    QSF_TV_EXPECT(t, "a b", 0, SP_A, SPACE, B);
    QSF_TV_EXPECT(t, "xy", QSF_TOK_NO_PREFIX, LOST);
    QSF_TV_EXPECT(t, "q", QSF_TOK_NO_PREFIX, NAN_TOKEN); /* there is a path even without any score */
    QSF_TV_EXPECT(t, "aqb", QSF_TOK_NO_PREFIX, A, NAN_TOKEN, B);
    QSF_TV_EXPECT(t, "a", QSF_TOK_BOS | QSF_TOK_EOS, SP_A, END);
    QSF_TV_EXPECT(t, "a</s>b", QSF_TOK_SPECIAL, SP_A, END, SPACE, B);
    assert_int_equal(qsf_tokenizer_eos(t), END);
    assert_int_equal(qsf_tokenizer_bos(t), -1);
    close_t5(t, &v);
}

static void test_unknown(void **state) {
    (void)state;
    QsfTestVocab v = { 0 };
    fill(&v);
    QsfTokenizer *t = open_t5(&v);
    QSF_TV_EXPECT(t, "zzz", QSF_TOK_NO_PREFIX, UNK); /* a run is merged to one */
    QSF_TV_EXPECT(t,
                  "a\xE4\xB8\xAD\xE6\x96\x87"
                  "b\xFF\xC3",
                  QSF_TOK_NO_PREFIX, A, UNK, B, UNK);
    QSF_TV_EXPECT(t, "z z", QSF_TOK_NO_PREFIX, UNK, SPACE, UNK);
    close_t5(t, &v);
    QsfTestVocab bytes = { 0 };
    fill(&bytes);
    int32_t first = (int32_t)bytes.n;
    for (unsigned i = 0; i < 256; i++) {
        snprintf(bytes.bytes[i], sizeof bytes.bytes[i], "<0x%02X>", i);
        qsf_tv_add(&bytes, bytes.bytes[i], 0, QSF_TOKEN_BYTE);
    }
    t = open_t5(&bytes);
    QSF_TV_EXPECT(t, "az\xE4\xB8\xAD\xFF", QSF_TOK_NO_PREFIX, A, first + 'z', first + 0xE4, first + 0xB8,
                  first + 0xAD, first + 0xFF);
    size_t len;
    const int32_t back[] = { SP_A, SP_AB, first + 0xE4, first + 0xB8, first + 0xAD };
    char *text = qsf_tv_detok(t, back, 5, false, false, &len);
    assert_string_equal(text, "a ab\xE4\xB8\xAD");
    free(text);
    close_t5(t, &bytes);
}

static void test_spaces(void **state) {
    (void)state;
    QsfTestVocab v = { 0 };
    fill(&v);
    qsf_gb_bool(&v.gb, "tokenizer.ggml.remove_extra_whitespaces", true);
    QsfTokenizer *t = open_t5(&v);
    QSF_TV_EXPECT(t, "  a   b ", 0, SP_A, SPACE, B);
    QSF_TV_EXPECT(t, "   ", 0, -1);
    close_t5(t, &v);
    QsfTestVocab kept = { 0 };
    fill(&kept);
    qsf_gb_bool(&kept.gb, "tokenizer.ggml.add_space_prefix", false);
    t = open_t5(&kept);
    QSF_TV_EXPECT(t, "  b ", 0, SPACE, SPACE, B, SPACE);
    close_t5(t, &kept);
}

/* A table written by hand: "x" becomes "a", without NULs; three units at offset 4. */
static size_t small_map(unsigned char *map) {
    uint32_t units[256] = { 0 };
    units[0] = 1u << 10;                         /* children at 1 ^ byte */
    units[1 ^ 'x'] = (200u << 10) | 0x100 | 'x'; /* a leaf, its value at (1 ^ 'x') ^ 200 */
    units[(1 ^ 'x') ^ 200] = 0x80000000u | 2;
    static const unsigned char texts[] = "?\0a";
    map[0] = 0;
    map[1] = 4;
    map[2] = map[3] = 0;
    for (size_t i = 0; i < 256; i++)
        for (unsigned k = 0; k < 4; k++) map[4 + 4 * i + k] = (unsigned char)(units[i] >> (8 * k));
    memcpy(map + 4 + 1024, texts, sizeof texts);
    return 4 + 1024 + sizeof texts;
}

static void test_charsmap(void **state) {
    (void)state;
    unsigned char map[2048];
    size_t n = small_map(map);
    QsfTestVocab v = { 0 };
    fill(&v);
    qsf_gb_array(&v.gb, "tokenizer.ggml.precompiled_charsmap", QSF_META_U8, n, map, n);
    QsfTokenizer *t = open_t5(&v);
    QSF_TV_EXPECT(t, "xbx", QSF_TOK_NO_PREFIX, AB, A);
    QSF_TV_EXPECT(t, "x x", 0, SP_A, SP_A);
    close_t5(t, &v);
}

/* Whatever the table contains, text is encoded to ids, or opening fails. */
static void test_damaged_charsmap(void **state) {
    (void)state;
    unsigned char map[2048];
    size_t n = small_map(map);
    QsfErr e = { 0 };
    QsfTestVocab v = { 0 };
    fill(&v);
    map[1] = 40; /* a table longer than the array */
    qsf_gb_array(&v.gb, "tokenizer.ggml.precompiled_charsmap", QSF_META_U8, n, map, n);
    qsf_ledger_init(&ledger, 0);
    assert_null(qsf_tv_open(&v, "t5", &ledger, &e));
    qsf_test_expect_err(&e, QSF_E_MODEL, "precompiled_charsmap");
    qsf_err_clear(&e);
    qsf_tv_free(&v);
    for (unsigned seed = 1; seed < 40; seed++) {
        QsfTestVocab w = { 0 };
        uint32_t x = seed;
        fill(&w);
        for (size_t i = 4; i < sizeof map; i++)
            map[i] = (unsigned char)((x = x * 1664525u + 1013904223u) >> 24);
        map[0] = 0, map[1] = 4, map[2] = map[3] = 0;
        qsf_gb_array(&w.gb, "tokenizer.ggml.precompiled_charsmap", QSF_META_U8, sizeof map, map, sizeof map);
        QsfTokenizer *t = open_t5(&w);
        QsfIds ids = { 0 };
        char text[512];
        for (size_t i = 0; i < sizeof text; i++) text[i] = (char)(i / 2);
        qsf_test_expect_ok(qsf_tokenizer_encode(t, text, sizeof text, 0, &ids, &e), &e);
        qsf_ids_free(&ids);
        close_t5(t, &w);
    }
}

/* CPU time of this process: independent of other load. */
static uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* One word of a megabyte takes as long per byte as one of a tenth. */
static void test_long_word(void **state) {
    (void)state;
    QsfTestVocab v = { 0 };
    fill(&v);
    QsfTokenizer *t = open_t5(&v);
    QsfErr e = { 0 };
    size_t n = 1 << 20;
    char *text = malloc(n);
    double ms[2];
    assert_non_null(text);
    for (size_t i = 0; i < n; i++) text[i] = "abcdz"[i * i % 5];
    for (unsigned k = 0; k < 2; k++) {
        QsfIds ids = { 0 };
        uint64_t start = cpu_ns();
        qsf_test_expect_ok(qsf_tokenizer_encode(t, text, k == 0 ? n / 10 : n, 0, &ids, &e), &e);
        ms[k] = (double)(cpu_ns() - start) / 1e6;
        qsf_ids_free(&ids);
    }
    printf("one word of 100 KiB: %.1f ms, of 1 MiB: %.1f ms\n", ms[0], ms[1]);
    assert_true(ms[1] < 60 * ms[0] + 50);
    free(text);
    close_t5(t, &v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scores),           cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_spaces),           cmocka_unit_test(test_charsmap),
        cmocka_unit_test(test_damaged_charsmap), cmocka_unit_test(test_long_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
