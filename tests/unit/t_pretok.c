/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Regular expressions and the pre-tokenizers made of them. */
#include "src/text/pretok.h"

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
    QsfErr e = {0};
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
        {"gpt-2", "Hello  world's 1234!!", "Hello/ / world/'s/ 1234/!!"},
        {"gpt-2", "a\n\n b  ", "a/\n\n/ b/  "},
        {"llama-bpe", "It'S 12345 x\n\n  y", "It/'S/ /123/45/ x/\n\n/ / y"},
        {"llama3", "(foo)bar", "(foo/)bar"},
        {"qwen2", "a 123", "a/ /1/2/3"},
        {"default", "x=12345", "x/=/123/45"},
        {"starcoder", "v12 34", "v/1/2/ /3/4"},
        {"deepseek-llm", "\xE4\xB8\xAD" "ab12\r\n", "\xE4\xB8\xAD/ab/12/\r/\n"},
        {"gpt-4o", "HelloWorld don't XMLHttp 1234", "Hello/World/ don't/ XMLHttp/ /123/4"},
        {"tekken", "HelloWorld don't 12", "Hello/World/ don/'t/ /1/2"},
        {"tiny_aya", "x1234567 12 123 123abc 1234abc", "x/1/234/567/ /12/ /123/ /123/abc/ /123/4/abc"},
        {"chameleon", "<sentinel:12>IMGIMGABZ    x", "</sentinel/:/1/2/>/IMGIMGABZ/    /x"},
        {"gpt-2", "", ""},
        /* U+180E is no white space, U+3000 is */
        {"gpt-2", "a\xE1\xA0\x8E" "b", "a/\xE1\xA0\x8E/b"},
        {"gpt-2", "a\xE3\x80\x80" "b", "a/\xE3\x80\x80/b"},
        {"gpt-2", "a\xE3\x80\x80!", "a/\xE3\x80\x80/!"},
        {"gpt-2", "a\xE1\xA0\x8E!", "a/\xE1\xA0\x8E!"},
        /* ill-formed bytes stay together, what is around them is cut as usual */
        {"llama-bpe", "ab\xFF\xC3 cd", "ab/\xFF\xC3/ cd"},
        {"llama-bpe", "\xE2\x82", "\xE2\x82"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_pieces(cases[i].name, cases[i].text, cases[i].want);
}

/* Every row compiles, its name is found, and its pieces join to the text. */
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
        QsfErr e = {0};
        QsfStrbuf got = QSF_STRBUF_INIT;
        assert_ptr_equal(qsf_pretok_spec(spec->name, strlen(spec->name)), spec);
        qsf_test_expect_ok(qsf_pretok_open(&p, spec, &e), &e);
        assert_true(p.bytes > 0 &&
                    p.bytes <= 32 * 1024); /* what the estimate of a tokenizer leaves for them */
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

static int stop_at_second(void *ctx, const char *piece, size_t len, QsfErr *err) {
    int *n = ctx;
    (void)piece;
    (void)len;
    return ++*n == 2 ? qsf_err_set(err, QSF_E_RUNTIME, "enough") : QSF_OK;
}

static void test_stops(void **state) {
    (void)state;
    QsfPretok p;
    QsfErr e = {0};
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
    QsfErr e = {0};
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
                               &end)); /* $ is the very end, not before a last newline */
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

/* A group per character outgrows the stack of the machine code: the interpreter takes over. */
static void test_deep_groups(void **state) {
    (void)state;
    enum { N = 20000 };
    QsfRegex *re;
    QsfErr e = {0};
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
        cmocka_unit_test(test_pieces), cmocka_unit_test(test_table),       cmocka_unit_test(test_stops),
        cmocka_unit_test(test_regex),  cmocka_unit_test(test_deep_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
