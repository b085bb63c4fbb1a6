/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sets of allowed tokens: each bit is what the automaton says of the token's bytes, for vocabularies of
 * several kinds; how much of a large vocabulary is looked at. */
#include "tests/harness/qsf_test.h"

#include "src/grammar/mask.h"
#include "tests/harness/tiny_vocab.h"

typedef struct Rig {
    QsfLedger ledger;
    QsfTestVocab vocab;
    QsfTokenizer *tok;
    QsfTokenTrie trie;
    QsfGrammar *g;
    QsfAutomaton *a;
    QsfMasks *m;
    uint32_t n_vocab;
    int32_t ends[1];
} Rig;

static bool usable(const void *arg, int32_t id) {
    const QsfTokenType type = qsf_tokenizer_type(arg, id);
    return type != QSF_TOKEN_CONTROL && type != QSF_TOKEN_UNKNOWN;
}

static void open_grammar(Rig *r, QsfGrammarKind kind, const char *text) {
    QsfErr e = { 0 };
    if (qsf_grammar_new(&r->g, kind, text, strlen(text), &e) != QSF_OK) fail_msg("%s", e.msg);
    assert_int_equal(qsf_automaton_new(&r->a, r->g, QSF_AUTOMATON_BYTES, &e), QSF_OK);
    const QsfMaskTokens t = { &r->trie, r->n_vocab, r->ends, 1 };
    assert_int_equal(qsf_masks_new(&r->m, &t, r->a, &r->ledger, &e), QSF_OK);
}

static void close_grammar(Rig *r) {
    qsf_masks_free(r->m);
    qsf_automaton_free(r->a);
    qsf_grammar_free(r->g);
}

static void open_trie(Rig *r) {
    QsfErr e = { 0 };
    r->n_vocab = qsf_tokenizer_n_vocab(r->tok);
    r->ends[0] = qsf_tokenizer_eos(r->tok);
    assert_int_equal(qsf_token_trie_open(&r->trie, r->tok, r->n_vocab, usable, r->tok, &r->ledger, &e),
                     QSF_OK);
}

static void close_trie(Rig *r) {
    qsf_token_trie_close(&r->trie);
    qsf_tokenizer_close(r->tok);
    assert_int_equal(r->ledger.used[QSF_MEM_LOGITS], 0);
    qsf_tv_free(&r->vocab);
    qsf_ledger_destroy(&r->ledger);
}

/* Compares a set with the automaton, token by token. Returns how many are allowed. */
static uint32_t check_state(Rig *r, uint32_t state, bool drops_space) {
    static char piece[QSF_PIECE_MAX];
    const uint64_t *set;
    QsfErr e = { 0 };
    uint32_t next, n = 0;
    assert_int_equal(qsf_masks_get(r->m, state, drops_space, &set, &e), QSF_OK);
    for (uint32_t id = 0; id < r->n_vocab; id++) {
        size_t len = qsf_tokenizer_piece(r->tok, (int32_t)id, false, piece, sizeof piece);
        const bool drop = drops_space && len > 0 && piece[0] == ' ';
        bool want = false;
        if (usable(r->tok, (int32_t)id) && len > 0 && len <= QSF_TRIE_DEPTH && len > drop) {
            assert_int_equal(qsf_automaton_feed(r->a, state, piece + drop, len - drop, &next, &e), QSF_OK);
            want = next > 0;
        }
        if (usable(r->tok, (int32_t)id) && drop && len == 1) { /* one that counts may follow */
            assert_int_equal(qsf_automaton_step(r->a, state, ' ', &next, &e), QSF_OK);
            want = next > 0;
        }
        if ((int32_t)id == r->ends[0]) want = qsf_automaton_ends(r->a, state);
        const bool is = set[id / 64] >> (id % 64) & 1;
        if (is != want)
            fail_msg("state %u, token %u '%.*s': %d instead of %d", state, id, (int)len, piece, is, want);
        n += is;
    }
    return n;
}

static const char schema[] =
    "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}, "
    "\"id\": {\"type\": \"string\", "
    "\"maxLength\": 9}, \"n\": {\"type\": \"integer\"}}, \"required\": [\"name\", \"id\", \"n\"]}";
static const char answer[] = "{\"name\": \"a\xF0\x9F\xA6\x89 b\", \"id\": \"ab c\", \"n\": -12}";

/* All states on the way of a text, which is split in the middle of a character too. */
static void check_way(Rig *r, const char *text) {
    uint32_t state = qsf_automaton_start(r->a);
    QsfErr e = { 0 };
    (void)check_state(r, state, true);
    for (const char *p = text; *p != '\0'; p++) {
        assert_true(check_state(r, state, false) > 0);
        assert_int_equal(qsf_automaton_step(r->a, state, (unsigned char)*p, &state, &e), QSF_OK);
        if (state == 0) fail_msg("not accepted at %s", p);
    }
    assert_true(qsf_automaton_ends(r->a, state));
    (void)check_state(r, state, false);
}

static void check_all(Rig *r) {
    open_trie(r);
    open_grammar(r, QSF_KIND_SCHEMA, schema);
    check_way(r, answer);
    close_grammar(r);
    open_grammar(r, QSF_KIND_GBNF, "root ::= [a-m]+ \" \" (\"\xF0\x9F\xA6\x89\" | <[7]>) [^x]{2,30}");
    const uint64_t *set;
    QsfErr e = { 0 };
    uint32_t state = qsf_automaton_start(r->a), next;
    (void)check_state(r, state, false);
    assert_int_equal(qsf_automaton_feed(r->a, state, "ab ", 3, &state, &e), QSF_OK);
    assert_int_equal(qsf_masks_get(r->m, state, false, &set, &e), QSF_OK);
    assert_true(set[0] >> 7 & 1);
    assert_int_equal(qsf_automaton_token(r->a, state, 7, "", 0, &next, &e), QSF_OK);
    assert_true(next > 0);
    assert_true(check_state(r, next, false) > 0);
    assert_int_equal(qsf_automaton_token(r->a, state, 8, "", 0, &next, &e), QSF_OK);
    assert_int_equal(next, 0);
    close_grammar(r);
    open_grammar(r, QSF_KIND_GBNF, "root ::= \" \" [a-m]+");
    assert_true(check_state(r, qsf_automaton_start(r->a), true) > 0);
    assert_true(check_state(r, qsf_automaton_start(r->a), false) > 0);
    close_grammar(r);
    close_trie(r);
}

static void test_spm(void **state) {
    static const char *const texts[] = { "\xE2\x96\x81",
                                         "\xE2\x96\x81{",
                                         "{\"",
                                         "\":",
                                         "\xE2\x96\x81\"",
                                         "\",",
                                         "name",
                                         "id",
                                         ("\xE2\x96\x81xy"),
                                         "b\"",
                                         "\xF0\x9F\xA6\x89",
                                         "\xE2\x96\x81-1",
                                         "12",
                                         "a\n" };
    Rig r = { 0 };
    QsfErr e = { 0 };
    (void)state;
    qsf_ledger_init(&r.ledger, 0);
    qsf_tv_spm(&r.vocab);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        (void)qsf_tv_add(&r.vocab, texts[i], -1, QSF_TOKEN_NORMAL);
    r.tok = qsf_tv_open(&r.vocab, "llama", &r.ledger, &e);
    if (r.tok == NULL) fail_msg("%s", e.msg);
    check_all(&r);
}

static void test_bpe(void **state) {
    Rig r = { 0 };
    QsfErr e = { 0 };
    (void)state;
    qsf_ledger_init(&r.ledger, 0);
    qsf_tv_bpe(&r.vocab);
    (void)qsf_tv_add(&r.vocab, "name", 0, QSF_TOKEN_NORMAL);
    (void)qsf_tv_add(&r.vocab, "<|end|>", 0, QSF_TOKEN_CONTROL);
    (void)qsf_tv_add(&r.vocab,
                     "\xC4\xA0"
                     "b",
                     0, QSF_TOKEN_NORMAL);
    qsf_tv_merge(&r.vocab, "a m");
    r.tok = qsf_tv_open(&r.vocab, "gpt2", &r.ledger, &e);
    if (r.tok == NULL) fail_msg("%s", e.msg);
    check_all(&r);
}

/* Nodes that are looked at in a vocabulary of 128 thousand tokens: in a string only those with a quote, an
 * escape or a part of a character. */
static void check_large(const char *path, bool all) {
    Rig r = { 0 };
    QsfErr e = { 0 };
    QsfSource *src;
    uint32_t state, most = 0;
    const uint64_t *set;
    qsf_ledger_init(&r.ledger, 0);
    assert_int_equal(qsf_source_open_tokens(&src, path, &r.ledger, &e), QSF_OK);
    assert_int_equal(qsf_tokenizer_open(&r.tok, src, &r.ledger, &e), QSF_OK);
    qsf_source_close(src);
    open_trie(&r);
    open_grammar(&r, QSF_KIND_SCHEMA, schema);
    if (all) check_way(&r, answer);
    close_grammar(&r);
    open_grammar(&r, QSF_KIND_SCHEMA, "{\"type\": \"object\"}");
    state = qsf_automaton_start(r.a);
    for (const char *p = "{\"a\": \"b c\", \"n\": [-1, true, {\"x\": 1.5e3}]}"; *p != '\0'; p++) {
        assert_int_equal(qsf_masks_get(r.m, state, false, &set, &e), QSF_OK);
        if (qsf_masks_visited(r.m) > most) most = qsf_masks_visited(r.m);
        assert_int_equal(qsf_automaton_step(r.a, state, (unsigned char)*p, &state, &e), QSF_OK);
    }
    print_message("%s: %u tokens, %u nodes, at most %u visited, %u states\n", path, r.n_vocab, r.trie.n, most,
                  qsf_automaton_states(r.a));
    assert_true(most < r.trie.n / 8);
    close_grammar(&r);
    close_trie(&r);
}

static void test_large(void **state) {
    const char *llama = qsf_test_data("oracle/tokenizers/vocab/ggml-vocab-llama-bpe.gguf");
    (void)state;
    if (llama == NULL) skip();
    check_large(llama, qsf_test_quick() == false);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_spm), cmocka_unit_test(test_bpe),
                                        cmocka_unit_test(test_large) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
