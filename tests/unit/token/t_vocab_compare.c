/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Vocabularies of two files: the same, one longer than the other, and each kind of difference, which is named
 * with its id. */
#include <string.h>

#include "src/token/tokenizer.h"
#include "src/token/vocab_compare.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"

enum { MOST = 6 };

typedef struct Vocab {
    const char *model; /* NULL: none */
    const char *text[MOST];
    int32_t type[MOST]; /* all 0: no types */
} Vocab;

static const Vocab base = { "gpt2",
                            { "a", "b", "<0x0A>", "<|end|>", "[PAD4]", NULL },
                            { QSF_TOKEN_NORMAL, QSF_TOKEN_NORMAL, QSF_TOKEN_BYTE, QSF_TOKEN_CONTROL,
                              QSF_TOKEN_UNUSED, 0 } };

static QsfSource *open_vocab(const Vocab *v, const char *name, QsfLedger *ledger) {
    QsfGgufBuild b = { .version = 3 };
    QsfSource *src;
    QsfErr err = { 0 };
    uint32_t n = 0;
    bool typed = false;
    while (n < MOST && v->text[n] != NULL) typed |= v->type[n++] != 0;
    qsf_gb_str(&b, "general.architecture", "llama");
    if (v->model != NULL) qsf_gb_str(&b, "tokenizer.ggml.model", v->model);
    if (n > 0) qsf_gb_strings(&b, "tokenizer.ggml.tokens", v->text, n);
    if (typed) qsf_gb_array(&b, "tokenizer.ggml.token_type", QSF_META_I32, n, v->type, n * sizeof *v->type);
    const char *path = qsf_test_tmp(name);
    assert_int_equal(qsf_gb_write(&b, path), 0);
    qsf_gb_free(&b);
    qsf_test_expect_ok(qsf_source_open(&src, path, ledger, &err), &err);
    return src;
}

/* Returns the number of common tokens; wrong: part of the message instead. */
static uint32_t compare(const Vocab *other, const char *wrong) {
    QsfLedger ledger;
    QsfErr err = { 0 };
    uint32_t n;
    qsf_ledger_init(&ledger, 0);
    QsfSource *a = open_vocab(&base, "main.gguf", &ledger), *b = open_vocab(other, "other.gguf", &ledger);
    const int rc = qsf_vocab_compare(a, b, &n, &err);
    if (wrong == NULL) qsf_test_expect_ok(rc, &err);
    if (wrong != NULL) {
        assert_int_equal(rc, QSF_E_MODEL);
        assert_non_null(strstr(err.msg, "other.gguf: "));
        if (strstr(err.msg, wrong) == NULL) fail_msg("'%s' is not in '%s'", wrong, err.msg);
    }
    qsf_source_close(a);
    qsf_source_close(b);
    qsf_ledger_destroy(&ledger);
    return n;
}

static void test_same(void **state) {
    Vocab v = base;
    (void)state;
    assert_int_equal(compare(&base, NULL), 5);
    v.text[4] = "<unused9>"; /* never chosen, in both */
    v.type[3] = QSF_TOKEN_USER;
    assert_int_equal(compare(&v, NULL), 5);
    v.text[3] = NULL; /* a prefix, and a longer one */
    assert_int_equal(compare(&v, NULL), 3);
    v = base;
    v.text[5] = "more";
    v.type[5] = QSF_TOKEN_NORMAL;
    assert_int_equal(compare(&v, NULL), 5);
}

static void test_different(void **state) {
    Vocab v = base;
    (void)state;
    v.text[1] = "B";
    (void)compare(&v, "token 1 is \"B\", expected \"b\"");
    v = base;
    v.text[3] = "<|end|";
    (void)compare(&v, "token 3 is \"<|end|\", expected \"<|end|>\"");
    v = base;
    v.type[2] = QSF_TOKEN_NORMAL; /* six characters instead of a newline */
    (void)compare(&v, "token 2 is \"<0x0A>\", expected the byte \"<0x0A>\"");
    v = base;
    memset(v.type, 0, sizeof v.type);
    (void)compare(&v, "token 2 is");
    v = base;
    v.text[0] = "\x1b[31m";
    (void)compare(&v, "token 0 is \"\\u001b[31m\"");
    v = base;
    v.model = "llama";
    (void)compare(&v, "tokenizer.ggml.model is 'llama', expected 'gpt2'");
    v = (Vocab){ .model = "gpt2" };
    (void)compare(&v, "no vocabulary");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_same), cmocka_unit_test(test_different) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
