/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Regular expressions and the pre-tokenizers that use them. */
#include "src/token/pretok.h"

#include "src/base/json.h"
#include "src/base/strbuf.h"
#include "tests/harness/qsf_test.h"

static int collect(void *ctx, const char *piece, size_t len, QsfErr *err) {
    QsfStrbuf *out = ctx;
    (void)err;
    assert_true(len > 0);
    if (out->len > 0) qsf_strbuf_addc(out, '/');
    qsf_strbuf_add(out, piece, len);
    return QSF_OK;
}

/* Pieces of text joined by slashes. */
static void expect_pieces(const char *name, const char *text, const char *want) {
    QsfPretok p;
    QsfErr e = { 0 };
    QsfStrbuf got = QSF_STRBUF_INIT;
    QsfRegexScratch *scratch = qsf_regex_scratch_new();
    const QsfPretokSpec *spec = qsf_pretok_spec(name, strlen(name));
    assert_non_null(scratch);
    assert_non_null(spec);
    qsf_test_expect_ok(qsf_pretok_open(&p, spec, &e), &e);
    qsf_test_expect_ok(qsf_pretok_split(&p, scratch, text, strlen(text), collect, &got, &e), &e);
    assert_string_equal(qsf_strbuf_str(&got), want);
    qsf_pretok_close(&p);
    qsf_regex_scratch_free(scratch);
    qsf_strbuf_free(&got);
}

static void test_pieces(void **state) {
    static const struct {
        const char *name, *text, *want;
    } cases[] = {
        /* clang-format off */
        { "gpt-2", "Hello  world's 1234!!", "Hello/ / world/'s/ 1234/!!" },
        { "gpt-2", "a\n\n b  ", "a/\n\n/ b/  " },
        { "llama-bpe", "It'S 12345 x\n\n  y", "It/'S/ /123/45/ x/\n\n/ / y" },
        { "llama3", "(foo)bar", "(foo/)bar" },
        { "qwen2", "a 123", "a/ /1/2/3" },
        { "default", "x=12345", "x/=/123/45" },
        { "starcoder", "v12 34", "v/1/2/ /3/4" },
        { "deepseek-llm", "\xE4\xB8\xAD" "ab12\r\n", "\xE4\xB8\xAD/ab/12/\r/\n" },
        { "gpt-4o", "HelloWorld don't XMLHttp 1234", "Hello/World/ don't/ XMLHttp/ /123/4" },
        { "tekken", "HelloWorld don't 12", "Hello/World/ don/'t/ /1/2" },
        { "tiny_aya", "x1234567 12 123 123abc 1234abc", "x/1/234/567/ /12/ /123/ /123/abc/ /123/4/abc" },
        { "chameleon", "<sentinel:12>IMGIMGABZ    x", "</sentinel/:/1/2/>/IMGIMGABZ/    /x" },
        { "tiny_aya", "a \xE3\x80\x80" "5552x", "a/ /\xE3\x80\x80/555/2/x" },
        { "superbpe", "x1234567 12 1a", "x/1/234/567/ /12/ /1/a" },
        { "afmoe", "ab1234567 \xE4\xB8\xAD\xEA\xB0\x80 12", "ab/1/234/567/ /\xE4\xB8\xAD\xEA\xB0\x80/ /12" },
        { "kimi-k2", "getUserName \xE4\xBD\xA0\xE5\xA5\xBD" "a I'll 1234", "get/User/Name/ /\xE4\xBD\xA0\xE5\xA5\xBD/a/ I'll/ /123/4" },
        { "gemma4", "a b\n\nc d", "a b/\n\n/c d" },
        { "whitespace", "a b  c", "a/ /b/  /c" },
        { "phi-4", "It'S 12345", "It/'S/ /123/45" },
        { "gpt-2", "", "" },
        /* U+180E is not white space, U+3000 is */
        { "gpt-2", "a\xE1\xA0\x8E" "b", "a/\xE1\xA0\x8E/b" },
        { "gpt-2", "a\xE3\x80\x80" "b", "a/\xE3\x80\x80/b" },
        { "gpt-2", "a\xE3\x80\x80!", "a/\xE3\x80\x80/!" },
        { "gpt-2", "a\xE1\xA0\x8E!", "a/\xE1\xA0\x8E!" },
        /* U+2028, U+2003 and U+3000 are white space and in a character class of DeepSeek; split as by
         * Oniguruma, which huggingface/tokenizers uses */
        { "deepseek-llm", " \xE2\x80\xA8", " /\xE2\x80\xA8" },
        { "deepseek-llm", "a\xE2\x80\xA8" "b", "a/\xE2\x80\xA8/b" },
        { "deepseek-llm", "\xE2\x80\xA8\xE2\x80\xA9", "\xE2\x80\xA8\xE2\x80\xA9" },
        { "deepseek-llm", " \xC2\x85x", " /\xC2\x85x" },
        { "deepseek-llm", " \xE3\x80\x80 ", " /\xE3\x80\x80/ " },
        { "deepseek-llm", "\xE3\x80\x80\xE6\x97\xA5", "\xE3\x80\x80/\xE6\x97\xA5" },
        { "deepseek-coder", " \xE2\x80\xA8x", " /\xE2\x80\xA8/x" },
        { "deepseek-coder", "\t\xE2\x80\x83 ", "\t/\xE2\x80\x83/ " },
        { "deepseek-coder", " \xC2\x85 ", " \xC2\x85 " },
        { "deepseek-coder", " \xE3\x80\x80 ", " /\xE3\x80\x80/ " },
        { "deepseek-coder", "\xE3\x80\x80\xE6\x97\xA5", "\xE3\x80\x80\xE6\x97\xA5" },
        /* ill-formed bytes stay together, the text around them is split as usual */
        { "llama-bpe", "ab\xFF\xC3 cd", "ab/\xFF\xC3/ cd" },
        { "llama-bpe", "\xE2\x82", "\xE2\x82" },
        /* clang-format on */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_pieces(cases[i].name, cases[i].text, cases[i].want);
}

/* Every row compiles, its name is found, and its pieces add up to the text. */
static void test_table(void **state) {
    static const char text[] = "The 1st, 22nd & 333rd: \"don't\"\t\n  caf\xC3\xA9 \xE4\xB8\xAD\xE6\x96\x87 "
                               "\xEA\xB0\x80 \xF0\x9F\x98\x80"
                               " \xFF x=1234567;\r\n\r\n   end  ";
    (void)state;
    const QsfPretokSpec *spec;
    QsfRegexScratch *scratch = qsf_regex_scratch_new();
    size_t n = 0;
    assert_non_null(scratch);
    for (; (spec = qsf_pretok_spec_at(n)) != NULL; n++) {
        QsfPretok p;
        QsfErr e = { 0 };
        QsfStrbuf got = QSF_STRBUF_INIT;
        assert_ptr_equal(qsf_pretok_spec(spec->name, strlen(spec->name)), spec);
        qsf_test_expect_ok(qsf_pretok_open(&p, spec, &e), &e);
        assert_true(p.bytes > 0 && p.bytes <= 96 * 1024); /* the size that the tokenizer estimates for them */
        qsf_test_expect_ok(qsf_pretok_split(&p, scratch, text, sizeof text - 1, collect, &got, &e), &e);
        size_t k = 0;
        for (size_t i = 0; i < got.len; i++) {
            if (got.data[i] == '/') continue;
            assert_int_equal(got.data[i], text[k]);
            k++;
        }
        assert_int_equal(k, sizeof text - 1);
        qsf_pretok_close(&p);
        qsf_strbuf_free(&got);
    }
    assert_true(n > 50);
    assert_null(qsf_pretok_spec("", 0));
    assert_null(qsf_pretok_spec("llama", 5));
    assert_null(qsf_pretok_spec("gpt-2\0x", 7));
    qsf_regex_scratch_free(scratch);
}

/* --- every name known to the reference --- */

#define ORACLE "oracle/tokenizers/"

static char *read_all(const char *relative, size_t *len) {
    const char *path = qsf_test_data(relative);
    FILE *f = path != NULL ? fopen(path, "rb") : NULL;
    QsfStrbuf b = QSF_STRBUF_INIT;
    char part[4096];
    size_t n;
    if (f == NULL) return NULL;
    while ((n = fread(part, 1, sizeof part, f)) > 0) qsf_strbuf_add(&b, part, n);
    fclose(f);
    return qsf_strbuf_take(&b, len);
}

/* Pieces of text, each terminated by a NUL. */
static void pieces(const QsfPretokSpec *spec, QsfRegexScratch *scratch, const QsfJson *texts,
                   QsfStrbuf *out) {
    QsfPretok p;
    QsfErr e = { 0 };
    qsf_strbuf_clear(out);
    qsf_test_expect_ok(qsf_pretok_open(&p, spec, &e), &e);
    for (size_t i = 0; i < qsf_json_size(texts); i++) {
        size_t len;
        const char *text = qsf_json_string(qsf_json_at(texts, i), &len);
        qsf_test_expect_ok(qsf_pretok_split(&p, scratch, text, len, collect, out, &e), &e);
        qsf_strbuf_addc(out, '\0');
    }
    qsf_pretok_close(&p);
}

/* Where the reference only approximates the models' own expressions, or uses code instead. */
static bool has_own_expressions(const char *name) {
    static const char *const own[] = {
        "tekken",  "gpt-4o", "llama4",   "kanana2", "talkie", "minimax-m2", "granite-embed-multi-97m",
        "kimi-k2", "afmoe",  "superbpe", "youtu",
    };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i], name) == 0) return true;
    return false;
}

static void check_flag(const char *name, const QsfJson *row, const char *key, unsigned flags, unsigned flag) {
    bool want = qsf_json_bool(qsf_json_get(row, key), false);
    if (want == ((flags & flag) != 0)) return;
    printf("%s: %s should be %d\n", name, key, want);
    fail();
}

static void check_name(const char *name, const QsfJson *row, QsfRegexScratch *scratch, const QsfJson *texts) {
    const char *passes[QSF_PRETOK_PASSES + 1] = { NULL };
    const QsfJson *regexes = qsf_json_get(row, "regexes");
    const QsfPretokSpec *spec = qsf_pretok_spec(name, strlen(name));
    if (spec == NULL) printf("%s is not in the table\n", name);
    assert_non_null(spec);
    check_flag(name, row, "clean_spaces", spec->flags, QSF_PRETOK_CLEAN);
    check_flag(name, row, "ignore_merges", spec->flags, QSF_PRETOK_IGNORE_MERGES);
    check_flag(name, row, "add_bos", spec->flags, QSF_PRETOK_BOS);
    if (has_own_expressions(name)) return;
    for (size_t i = 0; i < qsf_json_size(regexes); i++)
        passes[i] = qsf_json_string(qsf_json_at(regexes, i), NULL);
    QsfPretokSpec theirs = { .name = name, .passes = passes };
    QsfStrbuf want = QSF_STRBUF_INIT, got = QSF_STRBUF_INIT;
    pieces(&theirs, scratch, texts, &want);
    pieces(spec, scratch, texts, &got);
    if (want.len != got.len || memcmp(want.data, got.data, want.len) != 0)
        printf("%s cuts otherwise\n", name);
    assert_int_equal(want.len, got.len);
    assert_memory_equal(want.data, got.data, want.len);
    qsf_strbuf_free(&want);
    qsf_strbuf_free(&got);
}

/* The texts of the oracle as one JSON array. */
static QsfJson *oracle_texts(void) {
    size_t len;
    QsfErr e = { 0 };
    char *lines = read_all(ORACLE "ids/gpt-2.jsonl", &len);
    if (lines == NULL) return NULL;
    QsfStrbuf b = QSF_STRBUF_INIT;
    for (size_t at = 0; at < len;) {
        const char *end = memchr(lines + at, '\n', len - at);
        size_t n = end != NULL ? (size_t)(end - lines) - at : len - at, text_len;
        QsfJson *row = qsf_json_parse(lines + at, n, &e);
        const char *text = qsf_json_string(qsf_json_get(row, "text"), &text_len);
        qsf_strbuf_adds(&b, b.len == 0 ? "[" : ",");
        qsf_json_put_string(&b, text, text_len);
        qsf_json_free(row);
        at += n + 1;
    }
    qsf_strbuf_adds(&b, "]");
    QsfJson *texts = qsf_json_parse(qsf_strbuf_str(&b), b.len, &e);
    assert_non_null(texts);
    qsf_strbuf_free(&b);
    free(lines);
    return texts;
}

static void test_names(void **state) {
    static const char *const groups[] = { "reference", "newer_values_without_oracle_answers" };
    (void)state;
    size_t len = 0, n = 0;
    QsfErr e = { 0 };
    QsfJson *texts = oracle_texts();
    char *text = texts != NULL ? read_all(ORACLE "pre_tokenizers.json", &len) : NULL;
    if (text == NULL) {
        qsf_json_free(texts);
        skip();
    }
    QsfJson *all = qsf_json_parse(text, len, &e);
    QsfRegexScratch *scratch = qsf_regex_scratch_new();
    assert_non_null(all);
    assert_non_null(scratch);
    for (size_t g = 0; g < 2; g++) {
        const char *name;
        const QsfJson *row, *rows = qsf_json_get(qsf_json_get(all, groups[g]), "pre");
        for (const void *it = NULL; (it = qsf_json_next(rows, it, &name, &row)) != NULL; n++)
            check_name(strcmp(name, "(key absent)") == 0 ? "default" : name, row, scratch, texts);
    }
    assert_true(n > 80);
    qsf_regex_scratch_free(scratch);
    qsf_json_free(all);
    qsf_json_free(texts);
    free(text);
}

static int stop_at_second(void *ctx, const char *piece, size_t len, QsfErr *err) {
    int *n = ctx;
    (void)piece;
    (void)len;
    return ++*n == 2 ? qsf_err_set(err, QSF_E_RUNTIME, "enough") : QSF_OK;
}

static void test_stops(void **state) {
    (void)state;
    QsfPretok p;
    QsfErr e = { 0 };
    int n = 0;
    QsfRegexScratch *scratch = qsf_regex_scratch_new();
    assert_non_null(scratch);
    qsf_test_expect_ok(qsf_pretok_open(&p, qsf_pretok_spec("gpt-2", 5), &e), &e);
    assert_int_equal(qsf_pretok_split(&p, scratch, "a b c d", 7, stop_at_second, &n, &e), QSF_E_RUNTIME);
    assert_int_equal(n, 2);
    qsf_pretok_close(&p);
    qsf_regex_scratch_free(scratch);
}

static void test_regex(void **state) {
    (void)state;
    QsfRegex *re;
    QsfErr e = { 0 };
    size_t begin, end;
    QsfRegexScratch *scratch = qsf_regex_scratch_new();
    assert_non_null(scratch);
    assert_int_equal(qsf_regex_compile(&re, "a(b", &e), QSF_E_RUNTIME);
    qsf_test_expect_err(&e, QSF_E_RUNTIME, "offset 3");
    assert_null(re);
    qsf_regex_free(re);
    qsf_err_clear(&e);
    qsf_test_expect_ok(qsf_regex_compile(&re, "\\s+$", &e), &e);
    assert_true(qsf_regex_bytes(re) > 0);
    assert_false(qsf_regex_find(re, scratch, "a b\nc", 5, 0, &begin, &end));
    assert_true(qsf_regex_find(re, scratch, "a \n", 3, 0, &begin,
                               &end)); /* $ matches only at the very end, not before a final newline */
    assert_int_equal(begin, 1);
    assert_int_equal(end, 3);
    qsf_regex_free(re);
    qsf_test_expect_ok(qsf_regex_compile(&re, "(?=b)", &e), &e);
    assert_true(qsf_regex_find(re, scratch, "ab", 2, 0, &begin, &end));
    assert_int_equal(begin, 1);
    assert_int_equal(end, 1);
    qsf_regex_free(re);
    qsf_test_expect_ok(qsf_regex_compile(&re, "(a+)+b", &e), &e); /* exponential: a limit ends it */
    static const char as[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac";
    assert_false(qsf_regex_find(re, scratch, as, sizeof as - 1, 0, &begin, &end));
    qsf_regex_free(re);
    qsf_regex_scratch_free(scratch);
    qsf_regex_scratch_free(NULL);
}

/* An expression that finishes, but is expensive for every character, is aborted after some of them; the
 * allowed cost of long pieces grows with their length. */
static void test_expensive_matches(void **state) {
    (void)state;
    enum { N = 60000 };
    QsfRegex *re;
    QsfErr e = { 0 };
    size_t begin, end = 0, n = 0;
    char *text = malloc(N);
    QsfRegexScratch *scratch = qsf_regex_scratch_new();
    assert_non_null(text);
    assert_non_null(scratch);
    memset(text, 'a', N);
    qsf_test_expect_ok(qsf_regex_compile(&re, "(?:(?:a|a|a){11}b|a)", &e), &e);
    while (end < N && qsf_regex_find(re, scratch, text, N, end, &begin, &end)) n++;
    assert_in_range(n, 1, 500);
    qsf_regex_free(re);
    qsf_regex_scratch_free(scratch);
    scratch = qsf_regex_scratch_new();
    assert_non_null(scratch);
    /* 200 per piece, hundreds of steps for each */
    qsf_test_expect_ok(qsf_regex_compile(&re, "(?:(?:a|a|a){5}b|a){200}", &e), &e);
    for (n = 0, end = 0; end < N; n++) assert_true(qsf_regex_find(re, scratch, text, N, end, &begin, &end));
    assert_int_equal(n, N / 200);
    qsf_regex_free(re);
    qsf_test_expect_ok(qsf_regex_compile(&re, "(?:a(?:b|c)?)+", &e), &e);
    assert_true(qsf_regex_find(re, scratch, text, N, 0, &begin, &end));
    assert_int_equal(end, N);
    qsf_regex_free(re);
    qsf_regex_scratch_free(scratch);
    free(text);
}

/* One group per character overflows the stack of the machine code: the interpreter takes over. */
static void test_deep_groups(void **state) {
    (void)state;
    enum { N = 20000 };
    QsfRegex *re;
    QsfErr e = { 0 };
    size_t begin = 1, end = 0;
    char *text = malloc(N);
    QsfRegexScratch *scratch = qsf_regex_scratch_new();
    assert_non_null(text);
    assert_non_null(scratch);
    memset(text, 'a', N);
    qsf_test_expect_ok(qsf_regex_compile(&re, "(?:\\p{L}\\p{M}*(?: \\p{L})*)+", &e), &e);
    assert_true(qsf_regex_find(re, scratch, text, N, 0, &begin, &end));
    assert_int_equal(begin, 0);
    assert_int_equal(end, N);
    qsf_regex_free(re);
    qsf_regex_scratch_free(scratch);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),      cmocka_unit_test(test_table),
        cmocka_unit_test(test_names),       cmocka_unit_test(test_stops),
        cmocka_unit_test(test_regex),       cmocka_unit_test(test_expensive_matches),
        cmocka_unit_test(test_deep_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
