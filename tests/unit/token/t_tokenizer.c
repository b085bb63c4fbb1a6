/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opening tokenizers: what is refused, what is guessed, memory, special ids, use from many threads. */
#include "tests/harness/tiny_vocab.h"

#include <pthread.h>

#include "tests/harness/qsf_test.h"

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

static void expect_refused(QsfTestVocab *v, const char *model, const char *part) {
    QsfErr e = { 0 };
    assert_null(qsf_tv_open(v, model, &ledger, &e));
    qsf_test_expect_err(&e, QSF_E_MODEL, part);
    qsf_tv_free(v);
}

static void test_unsupported(void **state) {
    static const char *const kinds[] = { "bert", "none", "no_vocab", "whisper", "" };
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        QsfTestVocab v = { 0 };
        char quoted[32];
        qsf_tv_spm(&v);
        snprintf(quoted, sizeof quoted, "\"%s\"", kinds[i]);
        expect_refused(&v, kinds[i], quoted);
    }
}

static void test_bad_tokens(void **state) {
    (void)state;
    QsfTestVocab v = { 0 };
    expect_refused(&v, "llama", "tokenizer.ggml.tokens is missing");
    qsf_gb_strings(&v.gb, "tokenizer.ggml.tokens", NULL, 0);
    expect_refused(&v, "llama", "empty");
    for (int i = 0; i < 300; i++) qsf_tv_add(&v, "a", 0, QSF_TOKEN_NORMAL);
    expect_refused(&v, "llama", "no usable vocabulary: its tokens (tokenizer.ggml.tokens)");
    qsf_tv_add(&v, "<unk>", 0, QSF_TOKEN_UNKNOWN);
    qsf_tv_add(&v, "<s>", 0, QSF_TOKEN_CONTROL);
    for (int i = 0; i < 300; i++) qsf_tv_add(&v, "a", 0, QSF_TOKEN_NORMAL);
    expect_refused(&v, "gpt2", "no usable vocabulary");
    for (int i = 0; i < 300; i++) qsf_tv_add(&v, "", 0, QSF_TOKEN_NORMAL);
    expect_refused(&v, "gpt2", "no usable vocabulary");
    qsf_gb_array(&v.gb, "tokenizer.ggml.tokens", QSF_META_I32, 1, "\1\0\0\0", 4);
    expect_refused(&v, "llama", "tokenizer.ggml.tokens");
    qsf_gb_u32(&v.gb, "tokenizer.ggml.tokens", 7);
    expect_refused(&v, "gpt2", "tokenizer.ggml.tokens");
    static char longest[QSF_PIECE_MAX + 1];
    memset(longest, 'x', QSF_PIECE_MAX);
    qsf_tv_spm(&v);
    qsf_tv_add(&v, longest, 0, QSF_TOKEN_NORMAL);
    expect_refused(&v, "llama", "token 259");
}

static void test_bad_arrays(void **state) {
    static const char *const two[] = { "a", "b" };
    static const float scores[] = { 1, 2, 3 };
    (void)state;
    QsfTestVocab v = { 0 };
    qsf_gb_strings(&v.gb, "tokenizer.ggml.tokens", two, 2);
    qsf_gb_array(&v.gb, "tokenizer.ggml.scores", QSF_META_F32, 3, scores, sizeof scores);
    expect_refused(&v, "llama", "tokenizer.ggml.scores has 3 elements for 2 tokens");
    qsf_gb_strings(&v.gb, "tokenizer.ggml.tokens", two, 2);
    qsf_gb_array(&v.gb, "tokenizer.ggml.token_type", QSF_META_I32, 1, "\1\0\0\0", 4);
    expect_refused(&v, "llama", "tokenizer.ggml.token_type has 1 element for");
    qsf_gb_strings(&v.gb, "tokenizer.ggml.tokens", two, 2);
    qsf_gb_strings(&v.gb, "tokenizer.ggml.scores", two, 2);
    expect_refused(&v, "llama", "tokenizer.ggml.scores");
    qsf_gb_strings(&v.gb, "tokenizer.ggml.tokens", two, 2);
    qsf_gb_array(&v.gb, "tokenizer.ggml.token_type", QSF_META_F32, 2, scores, 8);
    expect_refused(&v, "llama", "tokenizer.ggml.token_type");
    qsf_tv_bpe(&v);
    qsf_gb_array(&v.gb, "tokenizer.ggml.merges", QSF_META_U32, 1, "\1\0\0\0", 4);
    expect_refused(&v, "gpt2", "tokenizer.ggml.merges");
    qsf_tv_spm(&v);
    qsf_gb_str(&v.gb, "tokenizer.ggml.add_bos_token", "yes");
    expect_refused(&v, "llama", "tokenizer.ggml.add_bos_token");
    qsf_tv_spm(&v);
    qsf_gb_str(&v.gb, "tokenizer.ggml.eos_token_id", "2");
    expect_refused(&v, "llama", "tokenizer.ggml.eos_token_id");
}

/* ---- arrays whose elements have other types than usual ---- */

/* Opens a small vocabulary whose scores or token types are given as an array of `elem`. */
static QsfTokenizer *open_as(const char *key, QsfMetaType elem, const void *bytes, size_t len, QsfErr *e) {
    static QsfTestVocab v;
    const uint32_t n = 259;
    const bool types = strcmp(key, "tokenizer.ggml.token_type") == 0;
    v = (QsfTestVocab){ 0 };
    qsf_tv_spm(&v);
    assert_int_equal(v.n, n);
    qsf_gb_strings(&v.gb, "tokenizer.ggml.tokens", v.tokens, n);
    if (types)
        qsf_gb_array(&v.gb, "tokenizer.ggml.scores", QSF_META_F32, n, v.scores, n * sizeof *v.scores);
    else
        qsf_gb_array(&v.gb, "tokenizer.ggml.token_type", QSF_META_I32, n, v.types, n * sizeof *v.types);
    if (elem == QSF_META_STRING)
        qsf_gb_strings(&v.gb, key, v.tokens, n);
    else
        qsf_gb_array(&v.gb, key, elem, n, bytes, len);
    v.n = 0; /* the arrays are there already */
    QsfTokenizer *t = qsf_tv_open(&v, "llama", &ledger, e);
    qsf_tv_free(&v);
    return t;
}

/* Writes the types of qsf_tv_spm as integers of `size` bytes; returns their length. */
static size_t put_types(unsigned char *out, size_t size) {
    static QsfTestVocab v;
    v = (QsfTestVocab){ 0 };
    qsf_tv_spm(&v);
    for (uint32_t i = 0; i < v.n; i++) {
        memset(out + i * size, 0, size);
        out[i * size] = (unsigned char)v.types[i];
    }
    const size_t len = v.n * size;
    qsf_tv_free(&v);
    return len;
}

static void test_element_types(void **state) {
    static const struct {
        QsfMetaType elem;
        size_t size;
    } ints[] = { { QSF_META_U8, 1 },  { QSF_META_I8, 1 },  { QSF_META_U16, 2 }, { QSF_META_I16, 2 },
                 { QSF_META_U32, 4 }, { QSF_META_I32, 4 }, { QSF_META_U64, 8 }, { QSF_META_I64, 8 } };
    static unsigned char bytes[259 * 8];
    static const char *const types = "tokenizer.ggml.token_type", *const scores = "tokenizer.ggml.scores";
    (void)state;
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
        QsfErr e = { 0 };
        size_t len = put_types(bytes, ints[i].size);
        QsfTokenizer *t = open_as(types, ints[i].elem, bytes, len, &e);
        qsf_test_expect_ok(t == NULL ? QSF_E_MODEL : QSF_OK, &e);
        QSF_TV_EXPECT(t, "</s>", QSF_TOK_SPECIAL | QSF_TOK_NO_PREFIX, 2);
        QSF_TV_EXPECT(t, "<s>", QSF_TOK_NO_PREFIX, 3 + '<', 3 + 's', 3 + '>');
        qsf_tokenizer_close(t);
        memset(bytes, 0, sizeof bytes);
        assert_null(open_as(scores, ints[i].elem, bytes, len, &e));
        qsf_test_expect_err(&e, QSF_E_MODEL, scores);
    }
    static const struct {
        QsfMetaType elem;
        size_t size;
    } refused[] = { { QSF_META_BOOL, 1 }, { QSF_META_F32, 4 }, { QSF_META_F64, 8 }, { QSF_META_STRING, 0 } };
    memset(bytes, 0, sizeof bytes);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        QsfErr e = { 0 };
        assert_null(open_as(types, refused[i].elem, bytes, 259 * refused[i].size, &e));
        qsf_test_expect_err(&e, QSF_E_MODEL, types);
    }
    QsfErr e = { 0 };
    QsfTokenizer *t = open_as(scores, QSF_META_F64, bytes, sizeof bytes, &e);
    qsf_test_expect_ok(t == NULL ? QSF_E_MODEL : QSF_OK, &e);
    qsf_tokenizer_close(t);
    memset(bytes, 0xFF, sizeof bytes); /* above what an i64 can hold */
    assert_null(open_as(types, QSF_META_U64, bytes, sizeof bytes, &e));
    qsf_test_expect_err(&e, QSF_E_MODEL, types);
}

static void test_no_merges(void **state) {
    static const char *const two[] = { "a", "b" };
    (void)state;
    QsfErr e = { 0 };
    QsfSource *src = NULL;
    QsfTokenizer *t;
    QsfGgufBuild b = { 0 };
    const char *path = qsf_test_tmp("nomerges.gguf");
    qsf_gb_str(&b, "tokenizer.ggml.model", "gpt2");
    qsf_gb_strings(&b, "tokenizer.ggml.tokens", two, 2);
    assert_int_equal(qsf_gb_write(&b, path), 0);
    qsf_test_expect_ok(qsf_source_open(&src, path, &ledger, &e), &e);
    assert_int_equal(qsf_tokenizer_open(&t, src, &ledger, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "tokenizer.ggml.merges");
    assert_null(t);
    assert_int_equal(qsf_tokenizer_estimate(src), 0);
    qsf_source_close(src);
    qsf_gb_free(&b);
    unlink(path);
}

/* Odd but harmless: an empty token, one with a NUL inside, a duplicate, an unknown type. */
static void test_odd_tokens(void **state) {
    static const char three[] = "\0\0\0\0\0\0\0\0"
                                "\3\0\0\0\0\0\0\0a\0b"
                                "\1\0\0\0\0\0\0\0c"
                                "\1\0\0\0\0\0\0\0c"
                                "\1\0\0\0\0\0\0\0d";
    static const int32_t types[] = { 1, 1, 1, 1, 77 };
    (void)state;
    QsfErr e = { 0 };
    QsfTestVocab v = { 0 };
    char piece[8];
    size_t len;
    qsf_gb_array(&v.gb, "tokenizer.ggml.tokens", QSF_META_STRING, 5, three, sizeof three - 1);
    qsf_gb_array(&v.gb, "tokenizer.ggml.token_type", QSF_META_I32, 5, types, sizeof types);
    QsfTokenizer *t = qsf_tv_open(&v, "llama", &ledger, &e);
    qsf_test_expect_ok(e.code, &e);
    assert_int_equal(qsf_tokenizer_find(t, "", 0), -1);
    assert_int_equal(qsf_tokenizer_find(t, "a\0b", 3), 1);
    assert_int_equal(qsf_tokenizer_find(t, "c", 1), 2);
    assert_int_equal(qsf_tokenizer_piece(t, 1, false, piece, sizeof piece), 3);
    assert_memory_equal(piece, "a\0b", 3);
    assert_int_equal(qsf_tokenizer_piece(t, 4, true, piece, sizeof piece), 0);
    assert_int_equal(qsf_tokenizer_piece(t, -1, true, piece, sizeof piece), 0);
    assert_int_equal(qsf_tokenizer_piece(t, 5, true, piece, sizeof piece), 0);
    assert_int_equal(qsf_tokenizer_type(t, INT32_MAX), QSF_TOKEN_UNUSED);
    assert_false(qsf_tokenizer_is_eog(t, INT32_MIN));
    qsf_tokenizer_raw(t, 99, &len);
    assert_int_equal(len, 0);
    qsf_tokenizer_close(t);
    qsf_tokenizer_close(NULL);
    qsf_tv_free(&v);
}

static void test_warnings(void **state) {
    static const struct {
        const char *pre, *part;
    } cases[] = {
        { NULL, "tokenizer.ggml.pre" },
        { "who-knows", "\"who-knows\"" },
        { "qwen2", NULL },
        { "llama3", NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        QsfErr e = { 0 };
        QsfTestVocab v = { 0 };
        qsf_tv_bpe(&v);
        if (cases[i].pre != NULL) qsf_gb_str(&v.gb, "tokenizer.ggml.pre", cases[i].pre);
        QsfTokenizer *t = qsf_tv_open(&v, "gpt2", &ledger, &e);
        qsf_test_expect_ok(e.code, &e);
        const char *warning = qsf_tokenizer_warning(t);
        if (cases[i].part == NULL) assert_null(warning);
        if (cases[i].part != NULL) assert_non_null(warning != NULL ? strstr(warning, cases[i].part) : NULL);
        qsf_tokenizer_close(t);
        qsf_tv_free(&v);
    }
}

static void test_special_ids(void **state) {
    (void)state;
    QsfErr e = { 0 };
    QsfTestVocab v = { 0 };
    qsf_tv_bpe(&v);
    int32_t end = qsf_tv_add(&v, "<|im_end|>", 0, QSF_TOKEN_USER);
    int32_t text_end = qsf_tv_add(&v, "<|endoftext|>", 0, QSF_TOKEN_CONTROL);
    int32_t bos = qsf_tv_add(&v, "<bos>", 0, QSF_TOKEN_CONTROL);
    qsf_gb_u32(&v.gb, "tokenizer.ggml.bos_token_id", (uint32_t)bos);
    qsf_gb_u32(&v.gb, "tokenizer.ggml.eos_token_id", 4000000);
    qsf_gb_str(&v.gb, "tokenizer.ggml.pre", "llama-bpe");
    QsfTokenizer *t = qsf_tv_open(&v, "gpt2", &ledger, &e);
    qsf_test_expect_ok(e.code, &e);
    assert_int_equal(qsf_tokenizer_bos(t), bos);
    assert_int_equal(qsf_tokenizer_eos(t), -1);
    assert_non_null(strstr(qsf_tokenizer_warning(t), "tokenizer.ggml.eos_token_id"));
    assert_true(qsf_tokenizer_is_eog(t, end));
    assert_true(qsf_tokenizer_is_eog(t, text_end));
    assert_false(qsf_tokenizer_is_eog(t, bos));
    assert_int_equal(qsf_tokenizer_type(t, end), QSF_TOKEN_CONTROL);
    assert_true(qsf_tokenizer_adds_bos(t));
    QSF_TV_EXPECT(t, "a", QSF_TOK_BOS | QSF_TOK_EOS, bos, 'a');
    QSF_TV_EXPECT(t, "", QSF_TOK_BOS, bos);
    qsf_tokenizer_close(t);
    qsf_tv_free(&v);
}

/* Which tokens end an answer: by text and type, by lists of ids, and by what else is in the vocabulary. */
static void test_ends(void **state) {
    enum { N = QSF_TOKEN_NORMAL, C = QSF_TOKEN_CONTROL, U = QSF_TOKEN_USER };
    static const struct {
        const char *text[4]; /* the last ones of the vocabulary; the first decides */
        int type[4];
        const char *chat_template;
        bool ends;
        int becomes;
    } rows[] = {
        { { "<|im_end|>", "<s>" }, { U, C }, NULL, true, C },
        { { "<|im_end|>", "<s>" }, { N, C }, NULL, false, N },
        { { "<|im_end|>", "<s>" }, { N, N }, NULL, true, C }, /* no types at all */
        { { "<|im_end|>", "<s>" }, { N, C }, "{{ x }}<|im_end|>", true, C },
        { { "<|file_sep|>", "<s>" }, { N, C }, NULL, false, N },
        { { "<|eot|>" }, { C }, NULL, true, C },
        { { "<|eot|>", "<s>" }, { U, C }, NULL, false, U },
        { { "<|eom|>" }, { C }, NULL, true, C },
        { { "<|eom|>", "<|message|>" }, { C, C }, NULL, false, C },
        { { "<|call|>" }, { C }, NULL, true, C },
        { { "<|calls|>" }, { C }, NULL, true, C },
        { { "<|flush|>" }, { C }, NULL, true, C },
        { { "<eos>" }, { C }, NULL, true, C },
        { { "<eos>", "<s>" }, { N, C }, NULL, false, N },
        { { "<turn|>" }, { C }, NULL, true, C },
        { { "<|tool_response>" }, { C }, NULL, true, C },
        { { "[EOS]" }, { C }, NULL, true, C },
        { { "</s>" }, { C }, NULL, true, C },
        { { "</s>", "<s>" }, { N, C }, NULL, false, N },
        { { "</s>", "<s>" }, { U, C }, NULL, false, U },
        { { "</s>", "<turn|>" }, { C, C }, NULL, false, U },
        { { "</s>", "<h1>" }, { C, U }, NULL, false, U },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        QsfErr e = { 0 };
        QsfTestVocab v = { 0 };
        int32_t id = -1;
        qsf_tv_bpe(&v);
        for (size_t k = 0; k < 4 && rows[i].text[k] != NULL; k++) {
            int32_t at = qsf_tv_add(&v, rows[i].text[k], 0, (QsfTokenType)rows[i].type[k]);
            if (k == 0) id = at;
        }
        if (rows[i].chat_template != NULL)
            qsf_gb_str(&v.gb, "tokenizer.chat_template", rows[i].chat_template);
        QsfTokenizer *t = qsf_tv_open(&v, "gpt2", &ledger, &e);
        qsf_test_expect_ok(e.code, &e);
        if (qsf_tokenizer_is_eog(t, id) != rows[i].ends || (int)qsf_tokenizer_type(t, id) != rows[i].becomes)
            fail_msg("row %zu: %s: ends %d, type %d", i, rows[i].text[0], qsf_tokenizer_is_eog(t, id),
                     (int)qsf_tokenizer_type(t, id));
        qsf_tokenizer_close(t);
        qsf_tv_free(&v);
    }
}

/* Arrays of end tokens: all of them end an answer, whatever their type; the first of eos_token_id is EOS. */
static void test_end_lists(void **state) {
    static const int32_t listed[] = { 'x', 'y', 4000000 }, eos[] = { 'q', 'r' };
    (void)state;
    for (int key = 0; key < 3; key++) {
        QsfErr e = { 0 };
        QsfTestVocab v = { 0 };
        qsf_tv_bpe(&v);
        qsf_tv_add(&v, "</s>", 0, QSF_TOKEN_CONTROL);
        qsf_tv_add(&v, "<turn|>", 0, QSF_TOKEN_USER);
        if (key == 0)
            qsf_gb_array(&v.gb, "tokenizer.ggml.eos_token_ids", QSF_META_I32, 3, listed, sizeof listed);
        if (key == 1) qsf_gb_array(&v.gb, "tokenizer.ggml.eos_token_id", QSF_META_U32, 2, eos, sizeof eos);
        if (key == 2) qsf_gb_u32(&v.gb, "tokenizer.ggml.eos_token_ids", 'x');
        QsfTokenizer *t = qsf_tv_open(&v, "gpt2", &ledger, &e);
        qsf_test_expect_ok(e.code, &e);
        assert_int_equal(qsf_tokenizer_eos(t), key == 1 ? 'q' : -1);
        assert_int_equal(qsf_tokenizer_is_eog(t, 'x'), key != 1);
        assert_int_equal(qsf_tokenizer_is_eog(t, 'y'), key == 0);
        assert_int_equal(qsf_tokenizer_is_eog(t, 'q'), key == 1);
        assert_int_equal(qsf_tokenizer_is_eog(t, 'r'), key == 1);
        qsf_tokenizer_close(t);
        qsf_tv_free(&v);
    }
    QsfErr e = { 0 };
    QsfTestVocab v = { 0 };
    qsf_tv_bpe(&v);
    qsf_gb_strings(&v.gb, "tokenizer.ggml.eos_token_ids", (const char *const[]){ "x" }, 1);
    assert_null(qsf_tv_open(&v, "gpt2", &ledger, &e));
    qsf_test_expect_err(&e, QSF_E_MODEL, "tokenizer.ggml.eos_token_ids");
    qsf_tv_free(&v);
}

static void test_budget(void **state) {
    (void)state;
    QsfErr e = { 0 };
    QsfTestVocab v = { 0 };
    qsf_tv_bpe(&v);
    qsf_tv_merge(&v, "a b");
    QsfSource *src = qsf_tv_source(&v, "gpt2", &ledger, &e);
    QsfTokenizer *t;
    assert_non_null(src);
    uint64_t estimate = qsf_tokenizer_estimate(src);
    for (uint64_t limit = 1; limit < estimate; limit += estimate / 16) {
        QsfLedger small;
        qsf_ledger_init(&small, limit);
        qsf_err_clear(&e);
        int rc = qsf_tokenizer_open(&t, src, &small, &e);
        if (rc == QSF_OK) qsf_tokenizer_close(t);
        if (rc != QSF_OK) assert_int_equal(rc, QSF_E_BUDGET);
        assert_int_equal(small.total, 0);
        qsf_ledger_destroy(&small);
    }
    QsfLedger exact;
    qsf_ledger_init(&exact, estimate);
    qsf_err_clear(&e);
    qsf_test_expect_ok(qsf_tokenizer_open(&t, src, &exact, &e), &e);
    qsf_tokenizer_close(t);
    qsf_ledger_destroy(&exact);
    qsf_source_close(src);
    qsf_tv_free(&v);
}

static void test_ids(void **state) {
    (void)state;
    QsfIds ids = { 0 };
    QsfErr e = { 0 };
    for (int32_t i = 0; i < 1000; i++) qsf_test_expect_ok(qsf_ids_push(&ids, i, &e), &e);
    qsf_test_expect_ok(qsf_ids_append(&ids, (const int32_t[]){ 7, 8 }, 2, &e), &e);
    qsf_test_expect_ok(qsf_ids_append(&ids, NULL, 0, &e), &e);
    assert_int_equal(ids.n, 1002);
    assert_int_equal(ids.data[999], 999);
    assert_int_equal(ids.data[1001], 8);
    qsf_ids_free(&ids);
    assert_null(ids.data);
}

static void *encode_often(void *arg) {
    static const char text[] = "abab cdcd <x> aabb 12345";
    const QsfTokenizer *t = arg;
    QsfIds first = { 0 };
    bool same = qsf_tokenizer_encode(t, text, sizeof text - 1, QSF_TOK_SPECIAL, &first, NULL) == QSF_OK;
    for (int i = 0; i < 500 && same; i++) {
        QsfIds ids = { 0 };
        same = qsf_tokenizer_encode(t, text, sizeof text - 1, QSF_TOK_SPECIAL, &ids, NULL) == QSF_OK &&
               ids.n == first.n && memcmp(ids.data, first.data, ids.n * sizeof *ids.data) == 0;
        qsf_ids_free(&ids);
    }
    qsf_ids_free(&first);
    return same ? arg : NULL;
}

static void test_threads(void **state) {
    (void)state;
    QsfErr e = { 0 };
    QsfTestVocab v = { 0 };
    pthread_t threads[4];
    qsf_tv_bpe(&v);
    qsf_tv_add(&v, "ab", 0, QSF_TOKEN_NORMAL);
    qsf_tv_add(&v, "<x>", 0, QSF_TOKEN_CONTROL);
    qsf_tv_merge(&v, "a b");
    QsfTokenizer *t = qsf_tv_open(&v, "gpt2", &ledger, &e);
    qsf_test_expect_ok(e.code, &e);
    for (size_t i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, encode_often, t), 0);
    for (size_t i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, t);
    }
    qsf_tokenizer_close(t);
    qsf_tv_free(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_unsupported, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_tokens, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_arrays, setup, teardown),
        cmocka_unit_test_setup_teardown(test_element_types, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_merges, setup, teardown),
        cmocka_unit_test_setup_teardown(test_odd_tokens, setup, teardown),
        cmocka_unit_test_setup_teardown(test_warnings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_special_ids, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_end_lists, setup, teardown),
        cmocka_unit_test_setup_teardown(test_budget, setup, teardown),
        cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
        cmocka_unit_test(test_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
