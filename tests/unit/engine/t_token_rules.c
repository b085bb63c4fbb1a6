/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Texts at which repeated sequences end (dry-breakers), in one token and across several. */
#include "tests/harness/qsf_test.h"

#include "src/engine/token_rules.h"
#include "tests/harness/gguf_build.h"

typedef struct Rules {
    QsfRuntime rt;
    QsfTokenRules r;
    QSFParams p;
    QsfSamplerInput in;
    char *piece;
} Rules;

static char path[256], scratch[1024];

static void open_rules(Rules *x) {
    QsfErr e = { 0 };
    QsfTinySpec spec = { 0 };
    QsfRuntimeOptions o = { 0 };
    memset(x, 0, sizeof *x);
    qsf_settings_default(&o.settings);
    snprintf(path, sizeof path, "%s", qsf_test_tmp("rules.gguf"));
    assert_int_equal(qsf_test_write_script_llama(path, "one _two ab: c _: d !<x> ;;", &spec), 0);
    qsf_test_expect_ok(qsf_runtime_open(&x->rt, path, &o, &e), &e);
    x->piece = scratch;
    x->r = (QsfTokenRules){ .rt = &x->rt, .piece = &x->piece, .piece_cap = sizeof scratch };
    x->p = o.settings.params;
    qsf_test_expect_ok(qsf_token_rules_update(&x->r, &x->p, &e), &e);
    qsf_token_rules_input(&x->r, &x->in);
}

static void close_rules(Rules *x) {
    qsf_runtime_close(&x->rt);
    unlink(path);
}

/* The words of a text are tokens, "_" is a space; breakers as in the setting. Returns how many tokens at the
 * end are unbroken, of at most `most`. */
static size_t unbroken(Rules *x, const char *breakers, const char *words, size_t most) {
    int32_t ids[32];
    size_t n = 0;
    snprintf(x->p.dry_breakers, sizeof x->p.dry_breakers, "%s", breakers);
    for (const char *at = words; *at != '\0';) {
        char word[64] = "";
        const size_t len = strcspn(at, " ");
        for (size_t i = 0; i < len; i++)
            strncat(word, at[i] == '_' ? "\xE2\x96\x81" : (char[]){ at[i], 0 }, 8);
        ids[n] = qsf_tokenizer_find(x->rt.tok, word, strlen(word));
        assert_true(ids[n++] >= 0);
        at += len + (at[len] == ' ');
    }
    return x->in.unbroken(x->in.arg, ids, n, most);
}

static bool breaks(Rules *x, const char *word) {
    return x->in.breaks(x->in.arg, qsf_tokenizer_find(x->rt.tok, word, strlen(word)));
}

static void test_breakers(void **state) {
    Rules x;
    (void)state;
    open_rules(&x);
    assert_int_equal(unbroken(&x, "", "one _two one", 9), 3);
    assert_int_equal(unbroken(&x, "", "one _two one", 2), 2);
    assert_int_equal(unbroken(&x, ":", "one ab: _two one", 9), 2);
    assert_int_equal(unbroken(&x, ":", "one _two ab:", 9), 0);
    assert_int_equal(unbroken(&x, "", "one <x> one _two", 9), 2);
    assert_true(breaks(&x, "<x>") && !breaks(&x, "ab:"));
    /* ": d" begins in one token and ends in another one; the rest of it may be in a sequence */
    assert_int_equal(unbroken(&x, ":d", "one ab: d _two", 9), 2);
    assert_int_equal(unbroken(&x, "b:c", "one ab: c _two one", 9), 3);
    assert_int_equal(unbroken(&x, "onetwo", "one _two one", 9), 3);
    assert_int_equal(unbroken(&x, "one twoone", "d one _two one c", 9), 3);
    assert_int_equal(unbroken(&x, ";;;", "d ;; ;; c", 9), 2);
    /* what follows completes it */
    assert_int_equal(unbroken(&x, "twoab:", "d one _two", 9), 3);
    assert_true(breaks(&x, "ab:") && !breaks(&x, "c") && !breaks(&x, "\xE2\x96\x81:"));
    assert_int_equal(unbroken(&x, "e two :d", "d one _two _:", 9), 4);
    assert_true(breaks(&x, "d"));
    close_rules(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_breakers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
