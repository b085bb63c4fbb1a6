/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tokenizer.json and tokenizer.model, written by hand: the effect of their steps on text, what is refused and
 * with which message. */
#include "tests/harness/tiny_vocab.h"

#include <sys/stat.h>

#include "tests/harness/qsf_test.h"

#define SP "\xE2\x96\x81"

static QsfLedger ledger;

static int setup(void **state) {
    (void)state;
    qsf_ledger_init(&ledger, 0);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    uint64_t left = ledger.total;
    qsf_ledger_destroy(&ledger);
    return left == 0 ? 0 : -1;
}

/* The tokenizer of a file with these bytes; NULL on failure, with *err set. */
static QsfTokenizer *open_bytes(const void *bytes, size_t len, QsfErr *err) {
    QsfSource *src = NULL;
    QsfTokenizer *t = NULL;
    const char *path = qsf_test_tmp("vocabulary");
    assert_int_equal(qsf_test_write_file(path, bytes, len), 0);
    if (qsf_source_open(&src, path, &ledger, err) == QSF_OK) {
        assert_int_equal(qsf_source_n_tensors(src), 0);
        uint64_t estimate = qsf_tokenizer_estimate(src);
        (void)qsf_tokenizer_open(&t, src, &ledger, err);
        if (t != NULL) assert_true(estimate > 0);
        qsf_source_close(src);
    }
    unlink(path);
    if (err->code != QSF_OK) assert_non_null(strstr(err->msg, "vocabulary"));
    return t;
}

static QsfTokenizer *open_text(const char *json) {
    QsfErr e = { 0 };
    QsfTokenizer *t = open_bytes(json, strlen(json), &e);
    qsf_test_expect_ok(e.code, &e);
    assert_non_null(t);
    return t;
}

static void expect_refused(const char *json, const char *part) {
    QsfErr e = { 0 };
    assert_null(open_bytes(json, strlen(json), &e));
    qsf_test_expect_err(&e, QSF_E_MODEL, part);
}

/* --- byte-level BPE --- */

#define BYTES_VOCAB                                                                            \
    "{\"a\":0,\"b\":1,\"c\":2,\"\\u0120\":3,\"ab\":4,\"\\u0120a\":5,\"1\":6,\"2\":7,\"12\":8," \
    "\"\\u0120ab\":9,\"\xC3\x83\":10,"                                                         \
    "\"\xC2\xA9\":11,\"e\":12,\"\xC3\x8C\":13,\"\\u0123\":14}"
#define BYTES_MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":" BYTES_VOCAB ",\"merges\":"
#define MERGES      "[\"\\u0120 a\",\"a b\",[\"1\",\"2\"]]}"
#define BYTE_LEVEL  "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"

static void test_bytes(void **state) {
    (void)state;
    QsfTokenizer *t = open_text(
        "{" BYTES_MODEL MERGES ",\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"added_tokens\":["
        "{\"id\":20,\"content\":\"<s>\",\"special\":true},"
        "{\"id\":21,\"content\":\"ca\",\"special\":false,\"rstrip\":true}],"
        "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":"
        "{\"id\":\"<s>\"}},{\"Sequence\":{\"id\":\"A\"}}]}}");
    assert_int_equal(qsf_tokenizer_n_vocab(t), 22);
    QSF_TV_EXPECT(t, "ab ab12", 0, 4, 5, 1, 8);
    QSF_TV_EXPECT(t, "b<s>", QSF_TOK_SPECIAL, 1, 20);
    QSF_TV_EXPECT(t, "bca  b", 0, 1, 21, 1); /* rstrip includes the spaces */
    QSF_TV_EXPECT(t, "a", QSF_TOK_BOS | QSF_TOK_EOS, 20, 0);
    assert_int_equal(qsf_tokenizer_type(t, 15), QSF_TOKEN_UNUSED); /* unused ids */
    assert_int_equal(qsf_tokenizer_type(t, 20), QSF_TOKEN_CONTROL);
    assert_null(qsf_tokenizer_warning(t));
    qsf_tokenizer_close(t);
    t = open_text("{" BYTES_MODEL MERGES
                  ",\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true}}");
    QSF_TV_EXPECT(t, "ab", 0, 5, 1);
    QSF_TV_EXPECT(t, " ab", 0, 5, 1);
    qsf_tokenizer_close(t);
}

/* Each behaviour of Split, and the other steps that split text. */
static void test_cuts(void **state) {
    static const struct {
        const char *step, *text;
        int32_t ids[8];
    } cases[] = {
        /* clang-format off */
        { "{\"type\":\"Digits\",\"individual_digits\":true}", "12", { 6, 7, -1 } },
        { "{\"type\":\"Digits\",\"individual_digits\":false}", "12", { 8, -1 } },
        { "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Isolated\"}", "ab", { 0, 1, -1 } },
        { "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"ab?\"},\"behavior\":\"Removed\",\"invert\":true}", "abc", { 4, -1 } },
        { "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},\"behavior\":\"MergedWithNext\"}", "ab ab", { 4, 5, 1, -1 } },
        { "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},\"behavior\":\"MergedWithPrevious\"}", "ab ab", { 4, 3, 4, -1 } },
        { "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[12]\"},\"behavior\":\"Contiguous\"}", "a12b", { 0, 8, 1, -1 } },
        { "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[12]\"},\"behavior\":\"Isolated\"}", "12", { 6, 7, -1 } },
        { "{\"type\":\"Punctuation\",\"behavior\":\"Isolated\"}", "ab", { 4, -1 } },
        /* clang-format on */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[2048];
        snprintf(json, sizeof json,
                 "{" BYTES_MODEL MERGES
                 ",\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[%s," BYTE_LEVEL "]}}",
                 cases[i].step);
        QsfTokenizer *t = open_text(json);
        qsf_tv_expect(t, cases[i].text, 0, cases[i].ids);
        qsf_tokenizer_close(t);
    }
}

static void test_normal_forms(void **state) {
    (void)state;
    QsfTokenizer *t = open_text("{" BYTES_MODEL MERGES
                                ",\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":" BYTE_LEVEL "}");
    QSF_TV_EXPECT(t, "e\xCC\x81", 0, 10, 11); /* one e with acute, two bytes */
    QSF_TV_EXPECT(t,
                  "a\xFF"
                  "e",
                  0, 0, 12); /* not UTF-8: not changed; there is no token for the byte */
    qsf_tokenizer_close(t);
    t = open_text("{" BYTES_MODEL MERGES
                  ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKD\"}]},"
                  "\"pre_tokenizer\":" BYTE_LEVEL "}");
    QSF_TV_EXPECT(t, "\xC2\xB9\xC2\xB2", 0, 8); /* superscript digits */
    qsf_tokenizer_close(t);
}

/* --- BPE of characters --- */

#define CHARS_MODEL                                                                                         \
    "\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"byte_fallback\":%s,\"vocab\":{\"<unk>\":0,\"" SP \
    "\":1,\"a\":2,\"b\":3,"                                                                                 \
    "\"" SP "a\":4,\"ab\":5,\"<0xC3>\":6,\"<0xA9>\":7,\"\\n\":8,\"\\n\\n\":9,\"b" SP                        \
    "\":10},\"merges\":[[\"" SP "\",\"a\"],\"a b\",\"b " SP "\"]}"

static void expect_chars(const char *fallback, const char *steps, const char *text, const int32_t *ids) {
    char json[2048];
    snprintf(json, sizeof json, "{" CHARS_MODEL "%s}", fallback, steps);
    QsfTokenizer *t = open_text(json);
    qsf_tv_expect(t, text, 0, ids);
    qsf_tokenizer_close(t);
}
#define EXPECT_CHARS(fallback, steps, text, ...) \
    expect_chars(fallback, steps, text, (const int32_t[]){ __VA_ARGS__, -1 })

static void test_chars(void **state) {
    static const char replace[] =
        ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" SP "\"}";
    static const char prepend[] =
        ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"" SP
        "\"},"
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" SP "\"}]}";
    static const char first[] = ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"" SP
                                "\",\"prepend_scheme\":\"first\",\"split\":false},"
                                "\"added_tokens\":[{\"id\":11,\"content\":\"<x>\",\"special\":false}]";
    static const char split[] = ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"" SP
                                "\",\"prepend_scheme\":\"never\",\"split\":true}";
    (void)state;
    EXPECT_CHARS("true", replace, "a ab", 2, 4, 3);
    EXPECT_CHARS("true", replace, "b a", 3, 4);
    EXPECT_CHARS("true", replace, "\xC3\xA9\xC3", 6, 7, 6);
    EXPECT_CHARS("true", replace, "z", 0);
    EXPECT_CHARS("true", replace, "\n\n\n", 8, 8, 8);
    EXPECT_CHARS("true", replace, "\n\n", 8, 8);    /* no merge makes the token of both */
    EXPECT_CHARS("true", prepend, " a", 1, 4);      /* always one more */
    EXPECT_CHARS("true", first, " a", 4);           /* only where there is none */
    EXPECT_CHARS("true", first, "a<x>a", 4, 11, 2); /* and only first */
    EXPECT_CHARS("true", split, "b b", 3, 1, 3);    /* "b" and the space are split */
    EXPECT_CHARS("true", replace, "b b", 10, 3);
}

/* --- unigram --- */

static void test_unigram(void **state) {
    (void)state;
    QsfTokenizer *t = open_text(
        "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0.0],[\"" SP "\",-2.5],"
        "[\"a\",-1],[\"b\",-1e0],[\"ab\",-1.5]]},\"pre_tokenizer\":{\"type\":\"Metaspace\","
        "\"replacement\":\"" SP "\",\"add_prefix_space\":true}}");
    QSF_TV_EXPECT(t, "ab", 0, 1, 4);
    QSF_TV_EXPECT(t, " ab", 0, 1, 4);
    QSF_TV_EXPECT(t, "zz a", 0, 1, 0, 1, 2);
    qsf_tokenizer_close(t);
}

/* --- what is refused --- */

static void test_refused(void **state) {
    static const struct {
        const char *json, *part;
    } cases[] = {
        /* clang-format off */
        { "{}", "no \"model\"" },
        { "{\"error\":1}", "is JSON, but neither a model nor a tokenizer.json" },
        { "{\"model\":{}}", "only BPE and Unigram" },
        { "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{}}}", "\"WordPiece\"" },
        { "{\"model\":{\"type\":\"BPE\",\"merges\":[]}}", "no \"vocab\"" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}}}", "no \"merges\"" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}}", "no usable vocabulary" },
        { "{\"added_tokens\":[{\"id\":0,\"content\":\"<s>\",\"special\":true}],\"model\":{\"type\":\"BPE\",\"vocab\":{},"
          "\"merges\":[]}}", "no usable vocabulary" },
        { "{\"metadata\":{},\"weight_map\":{\"a\":\"x.safetensors\"}}", "is the index of the weights" },
        { "{\"architectures\":[\"X\"]}", "is the configuration of a model directory" },
        { "\xEF\xBB\xBF{}", "no \"model\"" },
        { "\xFF\xFE{\x01", "is UTF-16 text, expected UTF-8" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}", "two tokens have the id 0" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}", "not a token id" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1.5},\"merges\":[]}}", "not a token id" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":99999999},\"merges\":[]}}", "not a token id" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":\"0\"},\"merges\":[]}}", "a number" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":[\"a\"],\"merges\":[]}}", "'{'" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a\"]}}", "merge 0" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\",\"b c\"]]}}", "merge 0" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\",\"b\",\"c\"]]}}", "']'" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"\\ud800\":0},\"merges\":[]}}", "surrogate" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\xFF\":0},\"merges\":[]}}", "UTF-8" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]", "ends at byte" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}} x", "the end of the text" },
        { "{\"model\":1,\"model\":2}", "occurs twice" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"end_of_word_suffix\":\"</w>\"}}", "end_of_word_suffix" },
        { "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}}", "a number" },
        { "{\"model\":{\"type\":\"Unigram\",\"unk_id\":5,\"vocab\":[[\"a\",0]]}}", "unk_id" },
        { "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0,1]]}}", "']'" },
        { "{" BYTES_MODEL MERGES ",\"normalizer\":{\"type\":\"Lowercase\"}}", "normalizer \"Lowercase\"" },
        { "{" BYTES_MODEL MERGES ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"x\\\\h\"},\"content\":\"y\"}}", "\\h" },
        { "{" BYTES_MODEL MERGES ",\"normalizer\":{\"type\":\"NFC\",\"form\":1}}", "NFC with \"form\"" },
        { "{" BYTES_MODEL MERGES ",\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}}", "\"UnicodeScripts\"" },
        { "{" BYTES_MODEL MERGES ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a[b]]\"},\"behavior\":\"Isolated\"}}", "a class in a class" },
        { "{" BYTES_MODEL MERGES ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a{2,3}+\"},\"behavior\":\"Isolated\"}}", "{2,3}+" },
        { "{" BYTES_MODEL MERGES ",\"stemmer\":null}", "\"stemmer\"" },
        { "{" BYTES_MODEL MERGES ",\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}}", "the decoder \"WordPiece\"" },
        { "{" BYTES_MODEL MERGES ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"}]}}", "the decoder \"BPEDecoder\"" },
        { "{" BYTES_MODEL MERGES ",\"decoder\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"_\"},\"content\":\" \"}}", "Replace of \"_\"" },
        { "{" BYTES_MODEL MERGES ",\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"_\"}}", "Metaspace of \"_\"" },
        { "{" BYTES_MODEL MERGES ",\"decoder\":{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":1}}", "Strip of \"the end\"" },
        { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[],\"dropout\":0.1}}", "dropout" },
        { "{" BYTES_MODEL MERGES ",\"added_tokens\":[{\"id\":20,\"content\":\"x\",\"fuzzy\":true}]}", "\"fuzzy\"" },
        { "{" BYTES_MODEL MERGES ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a&&b]\"},\"behavior\":\"Isolated\"}}", "\"&&\"" },
        { "{" BYTES_MODEL MERGES ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Dropped\"}}", "\"Dropped\"" },
        { "{" BYTES_MODEL MERGES ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a(\"},\"behavior\":\"Isolated\"}}", "regular expression" },
        { "{" BYTES_MODEL MERGES ",\"added_tokens\":[{\"content\":\"x\"}]}", "no id" },
        { "{" BYTES_MODEL MERGES ",\"added_tokens\":[{\"id\":0,\"content\":\"x\"}]}", "two tokens have the id 0" },
        { "{" BYTES_MODEL MERGES ",\"added_tokens\":[{\"id\":30}]}", "no content" },
        /* clang-format on */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_refused(cases[i].json, cases[i].part);
    }
}

/* A merge that names an unknown token cannot apply; the others do, and there is a notice. */
static void test_lost_merges(void **state) {
    (void)state;
    QsfTokenizer *t = open_text("{" BYTES_MODEL "[\"a b\",\"x y\",\"b a\"]},\"pre_tokenizer\":" BYTE_LEVEL
                                "}");
    assert_non_null(strstr(qsf_tokenizer_warning(t), "2 of the vocabulary's 3 merges"));
    QSF_TV_EXPECT(t, "abc", 0, 4, 2);
    qsf_tokenizer_close(t);
}

/* --- SentencePiece models --- */

typedef struct Proto {
    unsigned char b[512];
    size_t n;
} Proto;

static void put(Proto *p, const void *bytes, size_t n) {
    memcpy(p->b + p->n, bytes, n);
    p->n += n;
}

static void piece(Proto *p, const char *text, float score, unsigned type) {
    size_t n = strlen(text);
    unsigned char head[] = { 0x0A, (unsigned char)(n + 9), 0x0A, (unsigned char)n },
                  tail[] = { 0x18, (unsigned char)type };
    put(p, head, 4);
    put(p, text, n);
    put(p, "\x15", 1);
    put(p, &score, 4);
    put(p, tail, 2);
}

static Proto small_model(unsigned char model_type) {
    Proto p = { .n = 0 };
    piece(&p, "<unk>", 0, 2);
    piece(&p, "<s>", 0, 3);
    piece(&p, "</s>", 0, 3);
    piece(&p, SP, -1, 1);
    piece(&p, "a", -2, 1);
    piece(&p, "b", -3, 1);
    piece(&p, "ab", -2.5f, 1);
    unsigned char trainer[] = { 0x12, 2, 0x18, model_type }, normalizer[] = { 0x1A, 2, 0x20, 0 };
    put(&p, trainer, sizeof trainer);
    put(&p, normalizer, sizeof normalizer);
    return p;
}

static void test_model(void **state) {
    (void)state;
    for (unsigned char kind = 1; kind <= 2; kind++) {
        QsfErr e = { 0 };
        Proto p = small_model(kind);
        QsfTokenizer *t = open_bytes(p.b, p.n, &e);
        qsf_test_expect_ok(e.code, &e);
        QSF_TV_EXPECT(t, "ab b", 0, 3, 6, 3, 5);
        assert_int_equal(qsf_tokenizer_bos(t), 1);
        assert_int_equal(qsf_tokenizer_eos(t), 2);
        qsf_tokenizer_close(t);
    }
    Proto words = small_model(3);
    QsfErr e = { 0 };
    assert_null(open_bytes(words.b, words.n, &e));
    qsf_test_expect_err(&e, QSF_E_MODEL, "type WORD");
}

/* User-defined symbols are text to SentencePiece: one dummy prefix, at the start of the text,
 * and spaces beside them stay. */
static void test_model_symbols(void **state) {
    (void)state;
    QsfErr e = { 0 };
    for (unsigned char extra = 0; extra < 2; extra++) {
        Proto p = { .n = 0 };
        static const char *const texts[] = { "<unk>", "<s>", "<x>", SP, "a", SP "a" };
        for (unsigned i = 0; i < 6; i++) piece(&p, texts[i], i == 5 ? -1 : -2, i < 3 ? i + 2 : 1);
        unsigned char trainer[] = { 0x12, 2, 0x18, 2 }, normalizer[] = { 0x1A, 2, 0x20, extra };
        put(&p, trainer, sizeof trainer);
        put(&p, normalizer, sizeof normalizer);
        QsfTokenizer *t = open_bytes(p.b, p.n, &e);
        qsf_test_expect_ok(e.code, &e);
        QSF_TV_EXPECT(t, "a<x>a", 0, 5, 2, 4);
        QSF_TV_EXPECT(t, "<x>a", 0, 3, 2, 4);
        QSF_TV_EXPECT(t, "a <x> a", 0, 5, 3, 2, 5);
        QSF_TV_EXPECT(t, "<x><x>", 0, 3, 2, 2);
        QSF_TV_EXPECT(t, "<s>a", QSF_TOK_SPECIAL, 1, 5);
        if (extra) QSF_TV_EXPECT(t, " <x> ", 0, 3, 2);
        qsf_tokenizer_close(t);
    }
}

/* Every cut and every changed byte results in an error with a message or another vocabulary, never anything
 * worse. */
static void test_damaged_model(void **state) {
    (void)state;
    Proto p = small_model(2);
    for (size_t n = 0; n < p.n; n++) {
        QsfErr e = { 0 };
        QsfTokenizer *t = open_bytes(p.b, n, &e);
        if (t == NULL) assert_true(e.code == QSF_E_MODEL && e.msg[0] != '\0');
        assert_true(t == NULL || n == p.n - 4); /* everything except the normalizer's spec */
        qsf_tokenizer_close(t);
    }
    for (size_t i = 0; i < p.n; i++) {
        for (unsigned x = 1; x < 256; x += 42) {
            QsfErr e = { 0 };
            Proto q = p;
            q.b[i] = (unsigned char)(q.b[i] ^ x);
            QsfTokenizer *t = open_bytes(q.b, q.n, &e);
            if (t == NULL) assert_true(e.code == QSF_E_MODEL);
            qsf_tokenizer_close(t);
        }
    }
}

/* --- directories --- */

static void write_in(const char *dir, const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(qsf_test_write_file(path, text, strlen(text)), 0);
}

static void remove_in(const char *dir, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    unlink(path);
}

static void test_directory(void **state) {
    static const char *const names[] = { "tokenizer.json", "tokenizer_config.json", "chat_template.jinja" };
    (void)state;
    char dir[] = "/tmp/qsfdir.XXXXXX";
    QsfErr e = { 0 };
    QsfSource *src;
    QsfTokenizer *t;
    const char *text;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(qsf_source_open(&src, dir, &ledger, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "without weights (model.safetensors");
    qsf_err_clear(&e);
    assert_int_equal(qsf_source_open_tokens(&src, dir, &ledger, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "without tokenizer.json");
    qsf_err_clear(&e);
    write_in(dir, names[0], "{" BYTES_MODEL MERGES ",\"pre_tokenizer\":" BYTE_LEVEL "}");
    write_in(dir, names[1],
             "{\"bos_token\":{\"content\":\"<b>\"},\"eos_token\":\"<e>\",\"add_bos_token\":true,"
             "\"add_eos_token\":true,"
             "\"added_tokens_decoder\":{\"15\":{\"content\":\"<b>\",\"special\":true},"
             "\"16\":{\"content\":\"<e>\",\"special\":true}},"
             "\"chat_template\":[{\"name\":\"default\",\"template\":\"D\"},{\"name\":\"tool_use\","
             "\"template\":\"T\"}]}");
    qsf_test_expect_ok(qsf_source_open(&src, dir, &ledger, &e), &e);
    qsf_test_expect_ok(qsf_meta_str(src, "tokenizer.chat_template", &text, NULL, &e), &e);
    assert_string_equal(text, "D");
    qsf_test_expect_ok(qsf_meta_str(src, "tokenizer.chat_template.tool_use", &text, NULL, &e), &e);
    assert_string_equal(text, "T");
    assert_string_equal(qsf_source_format(src), "tokenizer.json");
    qsf_test_expect_ok(qsf_tokenizer_open(&t, src, &ledger, &e), &e);
    qsf_source_close(src);
    QSF_TV_EXPECT(t, "ab", QSF_TOK_BOS | QSF_TOK_EOS, 15, 4, 16);
    qsf_tokenizer_close(t);
    write_in(dir, names[2], "J");
    qsf_test_expect_ok(qsf_source_open(&src, dir, &ledger, &e), &e);
    qsf_test_expect_ok(qsf_meta_str(src, "tokenizer.chat_template", &text, NULL, &e), &e);
    assert_string_equal(text, "J");
    qsf_source_close(src);
    write_in(dir, names[1], "{\"bos_token\":");
    assert_int_equal(qsf_source_open(&src, dir, &ledger, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "tokenizer_config.json");
    for (size_t i = 0; i < 3; i++) remove_in(dir, names[i]);
    rmdir(dir);
}

static void expect_template(const QsfSource *s, const char *key, const char *want) {
    QsfErr e = { 0 };
    const char *text;
    qsf_test_expect_ok(qsf_meta_str(s, key, &text, NULL, &e), &e);
    if (want == NULL) assert_null(text);
    if (want != NULL) assert_non_null(text);
    if (want != NULL) assert_string_equal(text, want);
}

/* Templates in files of their own, and of processors. */
static void test_template_files(void **state) {
    static const struct {
        const char *file, *text, *plain, *rag, *tool_use;
    } steps[] = {
        { "processor_config.json", "{\"chat_template\":\"P\"}", "P", NULL, NULL },
        { "chat_template.json", "{\"chat_template\":{\"default\":\"C\",\"rag\":\"CR\"}}", "C", "CR", NULL },
        { "chat_template.json", "{\"chat_template\":\"C\"}", "C", NULL, NULL },
        { "tokenizer_config.json", "{\"chat_template\":[{\"name\":\"rag\",\"template\":\"TR\"}]}", "C", "TR",
          NULL },
        { "tokenizer_config.json", "{\"chat_template\":\"T\"}", "T", NULL, NULL },
        { "additional_chat_templates/rag.jinja", "A", "T", "A", NULL },
        { "additional_chat_templates/tool_use.jinja", "B", "T", "A", "B" },
        { "additional_chat_templates/notes.txt", "x", "T", "A", "B" },
        { "chat_template.jinja", "\xEF\xBB\xBFJ", "J", "A", "B" },
    };
    (void)state;
    char dir[] = "/tmp/qsfdir.XXXXXX", path[128];
    QsfErr e = { 0 };
    QsfSource *src;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/additional_chat_templates", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    write_in(dir, "tokenizer.json", "{" BYTES_MODEL MERGES ",\"pre_tokenizer\":" BYTE_LEVEL "}");
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        write_in(dir, steps[i].file, steps[i].text);
        qsf_test_expect_ok(qsf_source_open(&src, dir, &ledger, &e), &e);
        expect_template(src, "tokenizer.chat_template", steps[i].plain);
        expect_template(src, "tokenizer.chat_template.rag", steps[i].rag);
        expect_template(src, "tokenizer.chat_template.tool_use", steps[i].tool_use);
        qsf_source_close(src);
    }
    for (int i = 0; i < 31; i++) {
        snprintf(path, sizeof path, "additional_chat_templates/n%d.jinja", i);
        write_in(dir, path, "x");
    }
    assert_int_equal(qsf_source_open(&src, dir, &ledger, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "more than 32 named chat templates");
    for (int i = 0; i < 31; i++) {
        snprintf(path, sizeof path, "additional_chat_templates/n%d.jinja", i);
        remove_in(dir, path);
    }
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) remove_in(dir, steps[i].file);
    remove_in(dir, "tokenizer.json");
    snprintf(path, sizeof path, "%s/additional_chat_templates", dir);
    rmdir(path);
    rmdir(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),          cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_normal_forms),   cmocka_unit_test(test_chars),
        cmocka_unit_test(test_unigram),        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_model),          cmocka_unit_test(test_lost_merges),
        cmocka_unit_test(test_damaged_model),  cmocka_unit_test(test_directory),
        cmocka_unit_test(test_template_files), cmocka_unit_test(test_model_symbols),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
