/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The steps of a tokenizer.json, its added tokens, and what its models do with text that has no token: ids as
 * huggingface/tokenizers gives them (tools/compare-tokenizers does the same with random files). */
#include "tests/harness/qsf_test.h"
#include "tests/harness/tiny_vocab.h"

static QsfLedger ledger;

static QsfTokenizer *open_json(const char *json, QsfErr *err) {
    QsfSource *src = NULL;
    QsfTokenizer *t = NULL;
    const char *path = qsf_test_tmp("steps.json");
    assert_int_equal(qsf_test_write_file(path, json, strlen(json)), 0);
    if (qsf_source_open(&src, path, &ledger, err) == QSF_OK) {
        (void)qsf_tokenizer_open(&t, src, &ledger, err);
        qsf_source_close(src);
    }
    unlink(path);
    return t;
}

static const char *const models[] = {
    "{\"type\":\"BPE\",\"vocab\":{\"1\":4,\"<unk>\":0,\"\xE2\x96\x81\":1,\"a\":2,\"b\":3,\"\xC2\xB2\":5,"
    "\"ab\":6,\"\xE2\x96\x81"
    "a\":7,\"\\n\":8,\".\":9,\" "
    "\":10,\"<0xC3>\":11,\"<0xA9>\":12,\"c\":13,\"ac\":14,\"x\":16,\"z\":15},\"merges\":[[\"\xE2\x96\x81\","
    "\"a\"],[\"a\",\"b\"],[\"a\",\"c\"]]",
    "{\"type\":\"BPE\",\"vocab\":{\"1\":2,\"a\":0,\"b\":1,\"\xC4\xA0\":3,\"\xC3\x82\":4,\"\xC2\xB2\":5,"
    "\".\":6,\"ab\":7,\"\xC4\xA0"
    "a\":8,\"\xC4\x8A\":9,\"\xC3\x82\xC2\xB2\":10,\"\xC4\xA0\xC3\x82\":11,\"c\":12},"
    "\"merges\":[[\"\xC4\xA0\",\"a\"],[\"a\",\"b\"],[\"\xC4\xA0\",\"\xC3\x82\"],[\"\xC3\x82\",\"\xC2\xB2\"]]",
    "{\"type\":\"Unigram\",\"vocab\":[[\"<unk>\",0],[\"\xE2\x96\x81\",-2],[\"a\",-1],[\"b\",-1],[\"ab\","
    "-1.5],[\"\xE2\x96\x81"
    "a\",-1.25],[\"<0xC3>\",-9],[\"<0xA9>\",-9]]",
};
enum { CHARS, BYTES, UNI };

/* One file, with members of its model and others, and the ids of one text. */
static const struct {
    const char *name;
    int model;
    const char *members, *others, *text;
    int32_t ids[12];
} cases
    [] = {
        /* clang-format off */
    { "a word of its own", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"added_tokens\":[{\"id\":6,\"content\":\"ab\",\"single_word\":true,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":false}]", "ab a", { 6, 10, 2, -1 } },
    { "a word of its own", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"added_tokens\":[{\"id\":6,\"content\":\"ab\",\"single_word\":true,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":false}]", "abb", { 6, 3, -1 } },
    { "a word of its own", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"added_tokens\":[{\"id\":6,\"content\":\"ab\",\"single_word\":true,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":false}]", ".ab.", { 9, 6, 9, -1 } },
    { "a word of its own", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"added_tokens\":[{\"id\":6,\"content\":\"ab\",\"single_word\":true,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":false}]", "\xC3\xA9" "ab", { 0, 6, -1 } },
    { "white space of Unicode", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"added_tokens\":[{\"id\":17,\"content\":\"<l>\",\"single_word\":false,\"lstrip\":true,\"rstrip\":false,\"normalized\":false,\"special\":false},{\"id\":18,\"content\":\"<r>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":true,\"normalized\":false,\"special\":false}]", "a \xE3\x80\x80<l>b", { 2, 17, 3, -1 } },
    { "white space of Unicode", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"added_tokens\":[{\"id\":17,\"content\":\"<l>\",\"single_word\":false,\"lstrip\":true,\"rstrip\":false,\"normalized\":false,\"special\":false},{\"id\":18,\"content\":\"<r>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":true,\"normalized\":false,\"special\":false}]", "<r>\xC2\xA0\n b", { 18, 3, -1 } },
    { "leftmost before longest", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"added_tokens\":[{\"id\":17,\"content\":\"xa\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":false},{\"id\":18,\"content\":\"abbb\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":false}]", "xabbb", { 17, 3, 3, 3, -1 } },
    { "leftmost before longest", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"added_tokens\":[{\"id\":17,\"content\":\"xa\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":false},{\"id\":18,\"content\":\"abbb\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":false}]", "abbbb", { 18, 3, -1 } },
    { "normalized before it is searched for", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"b\"},\"added_tokens\":[{\"id\":17,\"content\":\"xa\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":true,\"special\":false},{\"id\":18,\"content\":\"za\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":false}]", "xa", { 17, -1 } },
    { "normalized before it is searched for", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"b\"},\"added_tokens\":[{\"id\":17,\"content\":\"xa\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":true,\"special\":false},{\"id\":18,\"content\":\"za\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":false}]", "xb", { 17, -1 } },
    { "normalized before it is searched for", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"b\"},\"added_tokens\":[{\"id\":17,\"content\":\"xa\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":true,\"special\":false},{\"id\":18,\"content\":\"za\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":false}]", "za", { 18, -1 } },
    { "normalized before it is searched for", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"b\"},\"added_tokens\":[{\"id\":17,\"content\":\"xa\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":true,\"special\":false},{\"id\":18,\"content\":\"za\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":false}]", "zb", { 15, 3, -1 } },
    { "bytes only if asked", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "", "\xC3\xA9", { 0, -1 } },
    { "bytes only if asked", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "", "a\xC3\xA9", { 2, 0, -1 } },
    { "bytes", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":true", "", "\xC3\xA9", { 11, 12, -1 } },
    { "bytes", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":true", "", "a\xC3\xA9" "b", { 2, 11, 12, 3, -1 } },
    { "one unknown for a run", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":true,\"byte_fallback\":false", "", "a\xC3\xA9\xC3\xA9" "b", { 2, 0, 3, -1 } },
    { "one unknown for a run", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":true,\"byte_fallback\":false", "", "\xC3\xA9 \xC3\xA9", { 0, 10, 0, -1 } },
    { "one unknown for a run", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":true,\"byte_fallback\":false", "", "\xC3\xA9\xC3\xA9", { 0, -1 } },
    { "each unknown", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "", "a\xC3\xA9\xC3\xA9" "b", { 2, 0, 0, 3, -1 } },
    { "dropped before merging", CHARS, "\"unk_token\":null,\"fuse_unk\":false,\"byte_fallback\":false", "", "a\xC3\xA9" "b", { 6, -1 } },
    { "dropped before merging", CHARS, "\"unk_token\":null,\"fuse_unk\":false,\"byte_fallback\":false", "", "a\xC3\xA9" "c", { 14, -1 } },
    { "a byte that has no token", BYTES, "\"unk_token\":null", "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":false,\"use_regex\":false}", "a\x01" "b", { 7, -1 } },
    { "a byte that has no token", BYTES, "\"unk_token\":null", "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":false,\"use_regex\":false}", "\xC3\xA9", { -1 } },
    { "removed", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\.\"},\"behavior\":\"Removed\",\"invert\":false}", "a.b", { 2, 3, -1 } },
    { "removed", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\.\"},\"behavior\":\"Removed\",\"invert\":false}", "..a", { 2, -1 } },
    { "between is removed", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[ab]+\"},\"behavior\":\"Removed\",\"invert\":true}", "ab1ab", { 6, 6, -1 } },
    { "between is removed", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[ab]+\"},\"behavior\":\"Removed\",\"invert\":true}", ".a.", { 2, -1 } },
    { "contiguous", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"Contiguous\",\"invert\":false}", "aab", { 2, 2, 3, -1 } },
    { "with the previous", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"MergedWithPrevious\",\"invert\":false}", "bab", { 3, 2, 3, -1 } },
    { "with the previous", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"MergedWithPrevious\",\"invert\":false}", "aab", { 2, 2, 3, -1 } },
    { "with the next", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"MergedWithNext\",\"invert\":false}", "bab", { 3, 6, -1 } },
    { "with the next", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"MergedWithNext\",\"invert\":false}", "aab", { 2, 6, -1 } },
    { "inverted", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"MergedWithNext\",\"invert\":true}", "bab", { 3, 2, 3, -1 } },
    { "an empty match", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?=b)\"},\"behavior\":\"Isolated\",\"invert\":false}", "abab", { 2, 3, 2, 3, -1 } },
    { "digits of bytes", BYTES, "\"unk_token\":null", "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":false,\"use_regex\":false},{\"type\":\"Digits\",\"individual_digits\":false}]}", " \xC2\xB2", { 11, 5, -1 } },
    { "digits of bytes", BYTES, "\"unk_token\":null", "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":false,\"use_regex\":false},{\"type\":\"Digits\",\"individual_digits\":false}]}", "\xC2\xB2" "a", { 4, 5, 0, -1 } },
    { "digits before bytes", BYTES, "\"unk_token\":null", "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\",\"individual_digits\":false},{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":false,\"use_regex\":false}]}", " \xC2\xB2", { 3, 10, -1 } },
    { "digits before bytes", BYTES, "\"unk_token\":null", "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\",\"individual_digits\":false},{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":false,\"use_regex\":false}]}", "\xC2\xB2" "a", { 10, 0, -1 } },
    { "the start of a text", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(?<!\\\\n)^\"},\"content\":\"\xE2\x96\x81\"}", "a\na", { 7, 8, 2, -1 } },
    { "the start of a text", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(?<!\\\\n)^\"},\"content\":\"\xE2\x96\x81\"}", "\na", { 1, 8, 2, -1 } },
    { "the starts of lines", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"^\"},\"content\":\"\xE2\x96\x81\"}", "a\na", { 7, 8, 7, -1 } },
    { "several steps", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":false},{\"type\":\"NFKC\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xE2\x96\x81\"}]}", "  a\xC2\xB2 a ", { 2, 0, 7, 1, -1 } },
    { "only first", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\",\"prepend_scheme\":\"first\",\"split\":true},\"added_tokens\":[{\"id\":17,\"content\":\"<x>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":false}]", "a<x>a a", { 7, 17, 2, 7, -1 } },
    { "what is written before the first character is first too", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"\xE2\x96\x81\"},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Punctuation\",\"behavior\":\"Isolated\"},{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\",\"prepend_scheme\":\"first\",\"split\":true}]}", ".a.", { 1, 1, 9, 2, 9, -1 } },
    { "always", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\",\"prepend_scheme\":\"always\",\"split\":true},\"added_tokens\":[{\"id\":17,\"content\":\"<x>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":false}]", "a<x>a a", { 7, 17, 7, 7, -1 } },
    { "words", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"pre_tokenizer\":{\"type\":\"Whitespace\"}", "a.b  ab", { 2, 9, 3, 6, -1 } },
    { "white space", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"}", "a\xE3\x80\x80" "b .", { 2, 3, 9, -1 } },
    { "fixed length", CHARS, "\"unk_token\":\"<unk>\",\"fuse_unk\":false,\"byte_fallback\":false", "\"pre_tokenizer\":{\"type\":\"FixedLength\",\"length\":1}", "ab", { 2, 3, -1 } },
    { "one unknown of a piece", UNI, "\"unk_id\":0,\"byte_fallback\":false", "\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"}", "\xC3\xA9\xC3\xA9 \xC3\xA9", { 0, 0, -1 } },
    { "one unknown of a piece", UNI, "\"unk_id\":0,\"byte_fallback\":false", "\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"}", "a\xC3\xA9" "b", { 2, 0, 3, -1 } },
    { "bytes of a run", UNI, "\"unk_id\":0,\"byte_fallback\":true", "", "\xC3\xA9", { 6, 7, -1 } },
    { "bytes of a run", UNI, "\"unk_id\":0,\"byte_fallback\":true", "", "\xC3\xA9z", { 0, -1 } },
        /* clang-format on */
    };

static void test_cases(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[4096];
        QsfErr e = { 0 };
        snprintf(json, sizeof json, "{\"model\":%s%s%s}%s%s}", models[cases[i].model],
                 *cases[i].members ? "," : "", cases[i].members, *cases[i].others ? "," : "",
                 cases[i].others);
        QsfTokenizer *t = open_json(json, &e);
        if (t == NULL) print_error("%s: %s\n", cases[i].name, e.msg);
        assert_non_null(t);
        QsfIds got = { 0 };
        const size_t len = strlen(cases[i].text);
        qsf_test_expect_ok(qsf_tokenizer_encode(t, cases[i].text, len, QSF_TOK_SPECIAL, &got, &e), &e);
        size_t n = 0;
        while (n < got.n && got.data[n] == cases[i].ids[n]) n++;
        if (n < got.n || cases[i].ids[n] >= 0)
            print_error("%s: \"%s\": token %zu\n", cases[i].name, cases[i].text, n);
        assert_int_equal(n, got.n);
        assert_int_equal(cases[i].ids[n], -1);
        qsf_ids_free(&got);
        qsf_tokenizer_close(t);
    }
}

/* A token that is searched for in normalized text is not made from what a user typed, whatever
 * its normal form. */
static void test_trusted(void **state) {
    (void)state;
    char json[4096];
    QsfErr e = { 0 };
    snprintf(
        json, sizeof json,
        "{\"model\":%s},\"normalizer\":{\"type\":\"NFKC\"},\"added_tokens\":[{\"id\":20,\"content\":\"<a>\","
        "\"special\":true,\"normalized\":true}]}",
        models[CHARS]);
    QsfTokenizer *t = open_json(json, &e);
    qsf_test_expect_ok(e.code, &e);
    static const char text[] = "<a>\xEF\xBC\x9C"
                               "a>"; /* U+FF1C, whose normal form is < */
    static const struct {
        uint8_t mask[9];
        size_t n; /* how many times it is found */
    } masks[] = { { { 1, 1, 1, 1, 1, 1, 1, 1 }, 2 },
                  { { 1, 1, 1, 1, 1, 0, 1, 1 }, 1 },
                  { { 1, 1, 0, 1, 1, 1, 1, 1 }, 1 },
                  { { 0 }, 0 } };
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        QsfIds got = { 0 };
        size_t found = 0;
        qsf_test_expect_ok(qsf_tokenizer_encode_marked(t, text, sizeof text - 1, masks[i].mask,
                                                       QSF_TOK_SPECIAL, &got, &e),
                           &e);
        for (size_t k = 0; k < got.n; k++) found += got.data[k] == 20;
        assert_int_equal(found, masks[i].n);
        qsf_ids_free(&got);
    }
    qsf_tokenizer_close(t);
}

/* Runs of spaces of Gemma and Yi: the text that is searched for has U+2581, the piece has spaces. */
static void test_space_runs(void **state) {
    (void)state;
    char json[4096], piece[8];
    QsfErr e = { 0 };
    snprintf(json, sizeof json,
             "{\"model\":%s},\"added_tokens\":[{\"id\":20,\"content\":\"\xE2\x96\x81\xE2\x96\x81\","
             "\"special\":false,"
             "\"normalized\":false}]}",
             models[CHARS]);
    QsfTokenizer *t = open_json(json, &e);
    qsf_test_expect_ok(e.code, &e);
    QSF_TV_EXPECT(t, "a\xE2\x96\x81\xE2\x96\x81", 0, 2, 20);
    assert_int_equal(qsf_tokenizer_piece(t, 20, false, piece, sizeof piece), 2);
    assert_memory_equal(piece, "  ", 2);
    qsf_tokenizer_close(t);
}

/* A few replacements in a row would make a text of gigabytes. */
static void test_growth(void **state) {
    (void)state;
    char json[4096], twenty[64];
    QsfErr e = { 0 };
    QsfIds got = { 0 };
    snprintf(twenty, sizeof twenty, "%s", "{\"String\":\"a\"},\"content\":\"aaaaaaaaaaaaaaaaaaaa\"}");
    size_t n = (size_t)snprintf(json, sizeof json,
                                "{\"model\":%s},\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[",
                                models[CHARS]);
    for (unsigned i = 0; i < 6; i++)
        n += (size_t)snprintf(json + n, sizeof json - n, "%s{\"type\":\"Replace\",\"pattern\":%s",
                              i > 0 ? "," : "", twenty);
    snprintf(json + n, sizeof json - n, "]}}");
    QsfTokenizer *t = open_json(json, &e);
    qsf_test_expect_ok(e.code, &e);
    assert_int_equal(qsf_tokenizer_encode(t, "ba", 2, 0, &got, &e), QSF_E_RUNTIME);
    assert_non_null(strstr(e.msg, "normalizer"));
    assert_int_equal(got.n, 0);
    e = (QsfErr){ 0 };
    qsf_test_expect_ok(qsf_tokenizer_encode(t, "bb", 2, 0, &got, &e), &e);
    qsf_ids_free(&got);
    qsf_tokenizer_close(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_trusted),
        cmocka_unit_test(test_space_runs),
        cmocka_unit_test(test_growth),
    };
    qsf_ledger_init(&ledger, 0);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    qsf_ledger_destroy(&ledger);
    return rc;
}
