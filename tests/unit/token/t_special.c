/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Special tokens in a text: both rules for overlaps against a direct search, trusted text, white space and
 * words at their ends, and time that does not depend on their lengths. */
#include "src/token/special.h"

#include <time.h>

#include "src/base/interrupt.h"
#include "tests/harness/qsf_test.h"
#include "tests/harness/tiny_vocab.h"

#define MAX_WORDS 12

static QsfLedger ledger;
static uint64_t seed = 11;

static uint32_t draw(uint32_t n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

/* A vocabulary of special tokens only. */
typedef struct Rig {
    QsfVocab v;
    char blob[2048];
    uint32_t off[MAX_WORDS + 1];
    uint8_t attr[MAX_WORDS];
    QsfArena arena;
    QsfSpecials s;
} Rig;

static void add(Rig *r, const char *text, QsfTokenType type) {
    size_t len = strlen(text), at = r->off[r->v.n];
    memcpy(r->blob + at, text, len);
    r->attr[r->v.n++] = (uint8_t)type;
    r->off[r->v.n] = (uint32_t)(at + len);
}

static void rig_init(Rig *r) {
    memset(r, 0, sizeof *r);
    r->v = (QsfVocab){ .blob = r->blob, .off = r->off, .attr = r->attr };
}

static void rig_open(Rig *r, bool leftmost) {
    QsfErr e = { 0 };
    QsfTrieText text[MAX_WORDS];
    qsf_arena_init(&r->arena, &ledger, QSF_MEM_TOKENIZER, "test", 0);
    for (uint32_t i = 0; i < r->v.n; i++)
        text[i] = (QsfTrieText){ r->blob + r->off[i], r->off[i + 1] - r->off[i], i };
    qsf_test_expect_ok(qsf_specials_init(&r->s, &r->v, text, r->v.n, leftmost, &r->arena, &e), &e);
}

static void rig_close(Rig *r) { qsf_arena_destroy(&r->arena); }

static bool at(const Rig *r, uint32_t i, const char *text, size_t len, size_t pos) {
    size_t n = r->off[i + 1] - r->off[i];
    return n <= len - pos && memcmp(text + pos, r->blob + r->off[i], n) == 0;
}

/* owner[i]: the token that byte i belongs to + 1. Searches for one token after another, longest first. */
static void search_by_length(const Rig *r, const char *text, size_t len, uint32_t *owner) {
    bool done[MAX_WORDS] = { false };
    for (uint32_t round = 0; round < r->v.n; round++) {
        uint32_t best = MAX_WORDS;
        for (uint32_t i = 0; i < r->v.n; i++) {
            if (done[i]) continue;
            if (best == MAX_WORDS || r->off[i + 1] - r->off[i] > r->off[best + 1] - r->off[best]) best = i;
        }
        done[best] = true;
        size_t n = r->off[best + 1] - r->off[best];
        for (size_t pos = 0; pos + n <= len; pos++) {
            bool fits = at(r, best, text, len, pos);
            for (size_t k = 0; k < n && fits; k++) fits = owner[pos + k] == 0;
            for (size_t k = 0; k < n && fits; k++) owner[pos + k] = best + 1;
        }
    }
}

static void search_leftmost(const Rig *r, const char *text, size_t len, uint32_t *owner) {
    for (size_t pos = 0; pos < len;) {
        uint32_t best = MAX_WORDS;
        size_t n = 1;
        for (uint32_t i = 0; i < r->v.n; i++) {
            if (!at(r, i, text, len, pos) || (best != MAX_WORDS && r->off[i + 1] - r->off[i] <= n)) continue;
            best = i;
            n = r->off[i + 1] - r->off[i];
        }
        for (size_t k = 0; k < n && best != MAX_WORDS; k++) owner[pos + k] = best + 1;
        pos += n;
    }
}

static void compare(const Rig *r, const char *text, size_t len, const uint32_t *owner) {
    QsfErr e = { 0 };
    QsfFragment *f;
    size_t n, covered = 0;
    qsf_test_expect_ok(qsf_specials_split(&r->s, text, len, true, NULL, NULL, &f, &n, &e), &e);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(f[i].off, covered);
        for (size_t k = 0; k < f[i].len; k++) assert_int_equal(owner[covered + k], (uint32_t)(f[i].id + 1));
        covered += f[i].len;
    }
    assert_int_equal(covered, len);
    qsf_fragments_free(f, n, NULL);
}

/* Tokens of few letters, many of which are parts of each other. */
static void test_overlaps(void **state) {
    (void)state;
    for (int round = 0; round < 4000; round++) {
        Rig r;
        char word[16], text[40];
        uint32_t owner[40] = { 0 };
        rig_init(&r);
        for (uint32_t i = 1 + draw(MAX_WORDS - 1); i > 0; i--) {
            size_t len = 1 + draw(7);
            for (size_t k = 0; k < len; k++) word[k] = (char)('a' + draw(2 + (uint32_t)round % 2));
            word[len] = '\0';
            bool twice = false;
            for (uint32_t k = 0; k < r.v.n; k++)
                twice = twice ||
                        (r.off[k + 1] - r.off[k] == len && memcmp(r.blob + r.off[k], word, len) == 0);
            if (!twice) add(&r, word, draw(2) ? QSF_TOKEN_CONTROL : QSF_TOKEN_USER);
        }
        size_t len = draw(sizeof text);
        for (size_t k = 0; k < len; k++) text[k] = (char)('a' + draw(2 + (uint32_t)round % 2));
        bool leftmost = round & 4;
        rig_open(&r, leftmost);
        (leftmost ? search_leftmost : search_by_length)(&r, text, len, owner);
        compare(&r, text, len, owner);
        rig_close(&r);
    }
}

static void expect_ids(const Rig *r, const char *text, const uint8_t *trusted, const int32_t *ids) {
    QsfErr e = { 0 };
    QsfFragment *f;
    size_t n;
    qsf_test_expect_ok(qsf_specials_split(&r->s, text, strlen(text), true, trusted, NULL, &f, &n, &e), &e);
    for (size_t i = 0; i < n; i++, ids++) {
        if (f[i].id != *ids) print_error("\"%s\": fragment %zu is %d\n", text, i, f[i].id);
        assert_int_equal(f[i].id, *ids);
    }
    assert_int_equal(*ids, -2);
    qsf_fragments_free(f, n, NULL);
}

#define EXPECT(r, text, trusted, ...) expect_ids(r, text, trusted, (const int32_t[]){ __VA_ARGS__, -2 })

static void test_trusted(void **state) {
    (void)state;
    Rig r;
    rig_init(&r);
    add(&r, "<|a|>", QSF_TOKEN_CONTROL);
    add(&r, "[INST]", QSF_TOKEN_USER);
    add(&r, "  ", QSF_TOKEN_USER);
    add(&r, "<|a|>  ", QSF_TOKEN_CONTROL);
    for (int leftmost = 0; leftmost < 2; leftmost++) {
        rig_open(&r, leftmost);
        EXPECT(&r, "<|a|>  ", NULL, 3);
        EXPECT(&r, "<|a|>  ", (const uint8_t *)"\1\1\1\1\1\0\0", 0, 2);
        EXPECT(&r, "<|a|>  ", (const uint8_t *)"\0\0\0\0\0\0\0", -1, 2);
        EXPECT(&r, "<|a|>  ", (const uint8_t *)"\1\1\0\1\1\1\1", -1, 2);
        EXPECT(&r, "[INST]x", (const uint8_t *)"\1\1\1\1\1\1\0", 1, -1);
        EXPECT(&r, "[INST]x", (const uint8_t *)"\0\1\1\1\1\1\0", -1);
        rig_close(&r);
    }
}

/* Options of added tokens of huggingface/tokenizers; only the second rule has words. */
static void test_ends(void **state) {
    (void)state;
    Rig r;
    rig_init(&r);
    add(&r, "foo", QSF_TOKEN_USER);
    add(&r, "<l>", QSF_TOKEN_USER);
    add(&r, "<r>", QSF_TOKEN_USER);
    r.attr[0] |= QSF_ATTR_SINGLE;
    r.attr[1] |= QSF_ATTR_LSTRIP;
    r.attr[2] |= QSF_ATTR_RSTRIP;
    rig_open(&r, true);
    EXPECT(&r, "foo", NULL, 0);
    EXPECT(&r, "a foo.", NULL, -1, 0, -1);
    EXPECT(&r, "foos", NULL, -1);
    EXPECT(&r, "_foo", NULL, -1);
    EXPECT(&r,
           "\xC3\xA9"
           "foo",
           NULL, -1);
    EXPECT(&r, "foo\xCC\x81", NULL, -1);        /* a combining mark */
    EXPECT(&r, "foo\xE2\x80\x8D", NULL, -1);    /* a joiner */
    EXPECT(&r, "foo\xE2\x82\xAC", NULL, 0, -1); /* a currency sign */
    EXPECT(&r, "foofoo foo", NULL, -1, 0);
    EXPECT(&r, "a \xC2\xA0\xE3\x80\x80<l>", NULL, -1, 1); /* Unicode white space */
    EXPECT(&r, "<r>\xC2\x85\xE2\x80\x83 a", NULL, 2, -1);
    EXPECT(&r, "<r> <l>", NULL, 2, 1);
    EXPECT(&r, " <l> <l> ", NULL, 1, 1, -1);
    rig_close(&r);
}

static double cpu_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* One token of 60,000 bytes, and its prefixes; a text where it almost matches at every place. */
static void test_long_tokens(void **state) {
    enum { LONG = 60000, TEXT = 1 << 20 };
    (void)state;
    QsfTestVocab v = { 0 };
    QsfErr e = { 0 };
    char *token = malloc(LONG + 1), *text = malloc(TEXT), *half;
    assert_non_null(token);
    assert_non_null(text);
    memset(token, 'a', LONG);
    token[LONG - 1] = 'b';
    token[LONG] = '\0';
    half = strdup(token);
    assert_non_null(half);
    half[LONG / 2] = '\0';
    qsf_tv_spm(&v);
    int32_t longest = qsf_tv_add(&v, token, 0, QSF_TOKEN_USER),
            shorter = qsf_tv_add(&v, half, 0, QSF_TOKEN_USER);
    QsfTokenizer *t = qsf_tv_open(&v, "llama", &ledger, &e);
    qsf_test_expect_ok(e.code, &e);
    memset(text, 'a', TEXT);
    QsfIds ids = { 0 };
    double start = cpu_seconds();
    qsf_test_expect_ok(qsf_tokenizer_encode(t, text, TEXT, QSF_TOK_NO_PREFIX, &ids, &e), &e);
    assert_true(cpu_seconds() - start < 10); /* a hundred times what it takes */
    assert_int_equal(ids.data[0], shorter);
    ids.n = 0;
    text[LONG] = 'b';
    qsf_test_expect_ok(qsf_tokenizer_encode(t, text, LONG + 1, QSF_TOK_NO_PREFIX, &ids, &e), &e);
    assert_int_equal(ids.data[ids.n - 1], longest);
    ids.n = 0;
    atomic_int stop = 1;
    const atomic_int *before = qsf_interrupt_watch(&stop);
    assert_int_equal(qsf_tokenizer_encode(t, text, TEXT, QSF_TOK_NO_PREFIX, &ids, &e), QSF_E_INTERRUPTED);
    (void)qsf_interrupt_watch(before);
    assert_int_equal(ids.n, 0);
    qsf_tokenizer_close(t);
    qsf_tv_free(&v);
    qsf_ids_free(&ids);
    free(half);
    free(token);
    free(text);
}

/* Tokens that are not special and too long for the trie, in the other kinds of vocabularies. */
static void test_long_pieces(void **state) {
    static const char *const models[] = { "rwkv", "t5", "plamo2" };
    char text[182];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        QsfTestVocab v = { 0 };
        QsfErr e = { 0 };
        QsfIds ids = { 0 };
        qsf_tv_spm(&v);
        int32_t one = qsf_tv_add(&v, "x", -1, QSF_TOKEN_NORMAL);
        int32_t eighty = qsf_tv_add(&v, text + 101, -2, QSF_TOKEN_NORMAL);
        int32_t hundred = qsf_tv_add(&v, text + 81, -2.5f, QSF_TOKEN_NORMAL);
        QsfTokenizer *t = qsf_tv_open(&v, models[i], &ledger, &e);
        qsf_test_expect_ok(e.code, &e);
        qsf_test_expect_ok(qsf_tokenizer_encode(t, text, 181, QSF_TOK_NO_PREFIX, &ids, &e), &e);
        assert_int_equal(ids.n, 3);
        int32_t sum = ids.data[0] + ids.data[1] + ids.data[2];
        assert_int_equal(sum, one + eighty + hundred);
        if (i == 0) assert_int_equal(ids.data[0], hundred); /* the longest first */
        ids.n = 0;
        qsf_test_expect_ok(qsf_tokenizer_encode(t, text, 79, QSF_TOK_NO_PREFIX, &ids, &e), &e);
        assert_int_equal(ids.n, 79);
        qsf_ids_free(&ids);
        qsf_tokenizer_close(t);
        qsf_tv_free(&v);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overlaps),    cmocka_unit_test(test_trusted),     cmocka_unit_test(test_ends),
        cmocka_unit_test(test_long_tokens), cmocka_unit_test(test_long_pieces),
    };
    qsf_ledger_init(&ledger, 0);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    qsf_ledger_destroy(&ledger);
    return rc;
}
