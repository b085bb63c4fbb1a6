/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every string and every property of every vocabulary in the tokenizer oracle, which holds the results of the
 * reference implementation (oracle/tokenizers/README.md of the test data). */
#include "tests/harness/qsf_test.h"

#include "src/base/clock.h"
#include "src/base/json.h"
#include "src/token/tokenizer_impl.h"

#define DIR       "oracle/tokenizers/"
#define MAX_SHOWN 5

/* --- SHA-256 (FIPS 180-4), for the token-to-text tables --- */

typedef struct Sha {
    uint32_t h[8];
    unsigned char block[64];
    uint64_t len;
} Sha;

static const uint32_t SHA_K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t ror(uint32_t x, unsigned n) { return x >> n | x << (32 - n); }

static void sha_block(Sha *s) {
    uint32_t w[64], v[8];
    memcpy(v, s->h, sizeof v);
    for (unsigned i = 0; i < 64; i++) {
        const unsigned char *p = s->block + 4 * (i % 16);
        if (i < 16) {
            w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
        } else {
            uint32_t a = w[i - 15], b = w[i - 2];
            w[i] = w[i - 16] + w[i - 7] + (ror(a, 7) ^ ror(a, 18) ^ a >> 3) +
                   (ror(b, 17) ^ ror(b, 19) ^ b >> 10);
        }
        uint32_t t1 = v[7] + (ror(v[4], 6) ^ ror(v[4], 11) ^ ror(v[4], 25)) +
                      ((v[4] & v[5]) ^ (~v[4] & v[6])) + SHA_K[i] + w[i];
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        uint32_t t2 = (ror(v[0], 2) ^ ror(v[0], 13) ^ ror(v[0], 22)) + majority;
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (unsigned i = 0; i < 8; i++) s->h[i] += v[i];
}

static void sha_init(Sha *s) {
    *s = (Sha){
        .h = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
               0x5be0cd19 },
    };
}

static void sha_add(Sha *s, const void *data, size_t len) {
    const unsigned char *p = data;
    for (size_t i = 0; i < len; i++) {
        s->block[s->len++ % 64] = p[i];
        if (s->len % 64 == 0) sha_block(s);
    }
}

static void sha_hex(Sha *s, char hex[65]) {
    uint64_t bits = 8 * s->len;
    unsigned char end[8];
    for (unsigned i = 0; i < 8; i++) end[i] = (unsigned char)(bits >> (56 - 8 * i));
    sha_add(s, "\x80", 1);
    while (s->len % 64 != 56) sha_add(s, "", 1);
    sha_add(s, end, 8);
    for (unsigned i = 0; i < 8; i++) snprintf(hex + 8 * i, 9, "%08x", s->h[i]);
}

/* --- one vocabulary --- */

typedef struct Vocab {
    const char *name;
    const QsfJson *about;
    QsfTokenizer *t;
    char *buf; /* QSF_PIECE_MAX + 8 */
    unsigned strings, wrong;
} Vocab;

__attribute__((format(printf, 3, 4))) static void wrong(Vocab *v, const char *id, const char *fmt, ...) {
    if (v->wrong++ >= MAX_SHOWN) return;
    va_list ap;
    printf("%s %s: ", v->name, id);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

/* The file's bytes (free them), or NULL. */
static char *read_all(const char *path, size_t *len) {
    FILE *f = path != NULL ? fopen(path, "rb") : NULL;
    QsfStrbuf b = QSF_STRBUF_INIT;
    char part[4096];
    size_t n;
    if (f == NULL) return NULL;
    while ((n = fread(part, 1, sizeof part, f)) > 0) qsf_strbuf_add(&b, part, n);
    fclose(f);
    return qsf_strbuf_take(&b, len);
}

static void check_ids(Vocab *v, const char *id, const char *field, const QsfJson *want, const char *text,
                      size_t len, unsigned flags) {
    QsfLedger l;
    QsfIds got = { .ledger = &l };
    QsfErr e = { 0 };
    if (want == NULL) return;
    qsf_ledger_init(&l, 0);
    qsf_test_expect_ok(qsf_tokenizer_encode(v->t, text, len, flags, &got, &e), &e);
    size_t i = 0, n = qsf_json_size(want);
    while (i < n && i < got.n && qsf_json_int(qsf_json_at(want, i), -1) == got.data[i]) i++;
    if (i < n || i < got.n) {
        wrong(v, id, "%s: token %zu of %zu: expected %lld of %zu, got %d", field, i, got.n,
              (long long)qsf_json_int(qsf_json_at(want, i), -1), n, i < got.n ? got.data[i] : -1);
    }
    if (qsf_tokenizer_least(v->t, text, len) > got.n)
        wrong(v, id, "%s: %zu tokens, at least %zu were expected", field, got.n,
              qsf_tokenizer_least(v->t, text, len));
    qsf_ids_free(&got);
    assert_int_equal(l.total, 0);
    qsf_ledger_destroy(&l);
}

/* Expected text: FIELD, or FIELD_hex, or the fallback if both are absent. */
static void expected(const QsfJson *row, const char *field, const QsfStrbuf *fallback, QsfStrbuf *out) {
    char hex_field[64];
    size_t len;
    qsf_strbuf_clear(out);
    snprintf(hex_field, sizeof hex_field, "%s_hex", field);
    const char *s = qsf_json_string(qsf_json_get(row, field), &len);
    const char *hex = qsf_json_string(qsf_json_get(row, hex_field), NULL);
    if (s != NULL) {
        qsf_strbuf_add(out, s, len);
    } else if (hex != NULL) {
        for (unsigned byte; sscanf(hex, "%2x", &byte) == 1; hex += 2) qsf_strbuf_addc(out, (char)byte);
    } else {
        qsf_strbuf_add(out, qsf_strbuf_str(fallback), fallback->len);
    }
}

static void compare(Vocab *v, const char *id, const char *field, const QsfStrbuf *want,
                    const QsfStrbuf *got) {
    if (want->len == got->len && memcmp(qsf_strbuf_str(want), qsf_strbuf_str(got), want->len) == 0) return;
    wrong(v, id, "%s: expected \"%s\", got \"%s\"", field, qsf_strbuf_str(want), qsf_strbuf_str(got));
}

static void detok(Vocab *v, const QsfJson *ids, bool show, QsfStrbuf *out) {
    QsfDetok d;
    qsf_strbuf_clear(out);
    qsf_detok_init(&d, v->t, show, false);
    if (v->t->clean_spaces) qsf_detok_clean(&d, true); /* as the reference does by default */
    for (size_t i = 0; i < qsf_json_size(ids); i++) {
        size_t n = qsf_detok_feed(&d, (int32_t)qsf_json_int(qsf_json_at(ids, i), -1), v->buf,
                                  QSF_PIECE_MAX + 8);
        qsf_strbuf_add(out, v->buf, n);
    }
    qsf_strbuf_add(out, v->buf, qsf_detok_flush(&d, v->buf, QSF_PIECE_MAX + 8));
}

static void check_texts(Vocab *v, const char *id, const QsfJson *row, const char *text, size_t len) {
    const QsfJson *ids = qsf_json_get(row, "ids");
    QsfStrbuf base = QSF_STRBUF_INIT, want = QSF_STRBUF_INIT, got = QSF_STRBUF_INIT;
    qsf_strbuf_add(&base, text, len);
    expected(row, "pieces", &base, &want);
    for (size_t i = 0; i < qsf_json_size(ids); i++) {
        int32_t token = (int32_t)qsf_json_int(qsf_json_at(ids, i), -1);
        qsf_strbuf_add(&got, v->buf, qsf_tokenizer_piece(v->t, token, true, v->buf, QSF_PIECE_MAX));
    }
    compare(v, id, "pieces", &want, &got);
    expected(row, "detok", &base, &want);
    detok(v, ids, true, &got);
    compare(v, id, "detok", &want, &got);
    qsf_strbuf_clear(&base);
    qsf_strbuf_add(&base, qsf_strbuf_str(&want), want.len);
    expected(row, "detok_nospecial", &base, &want);
    detok(v, ids, false, &got);
    compare(v, id, "detok_nospecial", &want, &got);
    qsf_strbuf_free(&base);
    qsf_strbuf_free(&want);
    qsf_strbuf_free(&got);
}

static void check_row(Vocab *v, const char *line, size_t line_len) {
    QsfErr e = { 0 };
    QsfJson *row = qsf_json_parse(line, line_len, &e);
    assert_non_null(row);
    size_t len;
    const char *id = qsf_json_string(qsf_json_get(row, "id"), NULL);
    const char *text = qsf_json_string(qsf_json_get(row, "text"), &len);
    const QsfJson *plain = qsf_json_get(row, "ids_nospecial");
    unsigned before = v->wrong;
    if (plain == NULL) plain = qsf_json_get(row, "ids");
    check_ids(v, id, "ids", qsf_json_get(row, "ids"), text, len, QSF_TOK_SPECIAL);
    check_ids(v, id, "ids_nospecial", plain, text, len, 0);
    check_ids(v, id, "ids_full", qsf_json_get(row, "ids_full"), text, len,
              QSF_TOK_SPECIAL | QSF_TOK_BOS | QSF_TOK_EOS);
    if (strstr(v->name, "+pre-") == NULL) check_texts(v, id, row, text, len);
    v->strings++;
    if (v->wrong > before) v->wrong = before + 1; /* count strings */
    qsf_json_free(row);
}

/* The reference's result for ill-formed UTF-8 is arbitrary; here the original bytes are restored. */
static void check_invalid(Vocab *v, const char *line, size_t line_len) {
    QsfErr e = { 0 };
    QsfJson *row = qsf_json_parse(line, line_len, &e);
    assert_non_null(row);
    QsfStrbuf text = QSF_STRBUF_INIT, got = QSF_STRBUF_INIT;
    QsfIds ids = { 0 };
    const char *hex = qsf_json_string(qsf_json_get(row, "hex"), NULL);
    for (unsigned byte; sscanf(hex, "%2x", &byte) == 1; hex += 2) qsf_strbuf_addc(&text, (char)byte);
    qsf_test_expect_ok(
        qsf_tokenizer_encode(v->t, qsf_strbuf_str(&text), text.len, QSF_TOK_NO_PREFIX, &ids, &e), &e);
    bool user = false; /* user-defined tokens may match bytes that are not UTF-8 */
    for (size_t i = 0; i < ids.n; i++) {
        qsf_strbuf_add(&got, v->buf, qsf_tokenizer_piece(v->t, ids.data[i], true, v->buf, QSF_PIECE_MAX));
        user = user || qsf_tokenizer_type(v->t, ids.data[i]) == QSF_TOKEN_USER;
    }
    if (!user) compare(v, qsf_json_string(qsf_json_get(row, "id"), NULL), "invalid", &text, &got);
    qsf_ids_free(&ids);
    qsf_strbuf_free(&text);
    qsf_strbuf_free(&got);
    qsf_json_free(row);
}

static void check_lines(Vocab *v, const char *folder, void (*check)(Vocab *, const char *, size_t)) {
    char path[256];
    size_t len = 0;
    snprintf(path, sizeof path, DIR "%s/%s.jsonl", folder, v->name);
    char *all = read_all(qsf_test_data(path), &len);
    for (size_t at = 0; at < len;) {
        const char *end = memchr(all + at, '\n', len - at);
        size_t n = end != NULL ? (size_t)(end - all) - at : len - at;
        if (n > 0) check(v, all + at, n);
        at += n + 1;
    }
    free(all);
}

static void check_number(Vocab *v, const char *field, int64_t got) {
    int64_t want = qsf_json_int(qsf_json_get(v->about, field), -2);
    if (qsf_json_type(qsf_json_get(v->about, field)) == QSF_JSON_BOOL) {
        want = qsf_json_bool(qsf_json_get(v->about, field), false);
    }
    if (want != got) wrong(v, field, "expected %lld, got %lld", (long long)want, (long long)got);
}

static void check_pieces_hash(Vocab *v, const char *field, bool show) {
    Sha sha;
    char hex[65];
    const char *want = qsf_json_string(qsf_json_get(v->about, field), NULL);
    sha_init(&sha);
    for (uint32_t i = 0; i < qsf_tokenizer_n_vocab(v->t); i++) {
        size_t n = qsf_tokenizer_piece(v->t, (int32_t)i, show, v->buf, QSF_PIECE_MAX);
        for (unsigned k = 0; k < 32; k += 8) sha_add(&sha, (unsigned char[]){ (unsigned char)(n >> k) }, 1);
        sha_add(&sha, v->buf, n);
    }
    sha_hex(&sha, hex);
    if (want == NULL || strcmp(want, hex) != 0) wrong(v, field, "expected %s, got %s", want, hex);
}

/* The token that ends a turn, -1 if there is none, also ends the answer. */
static void check_end_of_turn(Vocab *v) {
    const int64_t eot = qsf_json_int(qsf_json_get(v->about, "eot"), -1);
    if (eot >= 0 && !qsf_tokenizer_is_eog(v->t, (int32_t)eot))
        wrong(v, "eot", "token %lld does not end an answer", (long long)eot);
}

/* Is the end token added to texts? */
static bool ends_with_eos(const Vocab *v) {
    QsfErr e = { 0 };
    QsfIds ids = { 0 };
    qsf_test_expect_ok(qsf_tokenizer_encode(v->t, "", 0, QSF_TOK_EOS, &ids, &e), &e);
    const bool ends = ids.n > 0;
    qsf_ids_free(&ids);
    return ends;
}

static void check_properties(Vocab *v) {
    const QsfJson *eog = qsf_json_get(v->about, "eog");
    uint32_t n = qsf_tokenizer_n_vocab(v->t), n_eog = 0, n_control = 0;
    for (uint32_t i = 0; i < n; i++) {
        n_eog += qsf_tokenizer_is_eog(v->t, (int32_t)i);
        n_control += qsf_tokenizer_type(v->t, (int32_t)i) == QSF_TOKEN_CONTROL;
    }
    check_number(v, "n_tokens", n);
    check_number(v, "n_control", n_control);
    check_number(v, "bos", qsf_tokenizer_bos(v->t));
    check_number(v, "eos", qsf_tokenizer_eos(v->t));
    check_end_of_turn(v);
    check_number(v, "add_bos", qsf_tokenizer_adds_bos(v->t));
    check_number(v, "add_eos", ends_with_eos(v));
    if (n_eog != qsf_json_size(eog))
        wrong(v, "eog", "expected %zu tokens, got %u", qsf_json_size(eog), n_eog);
    for (size_t i = 0; i < qsf_json_size(eog); i++) {
        int32_t id = (int32_t)qsf_json_int(qsf_json_at(eog, i), -1);
        if (!qsf_tokenizer_is_eog(v->t, id)) wrong(v, "eog", "%d does not end a generation", id);
    }
    check_pieces_hash(v, "pieces_sha256", true);
    check_pieces_hash(v, "pieces_nospecial_sha256", false);
}

/* --- opening --- */

static void override(QsfSource *src, const char *key, const QsfJson *value) {
    char spec[256];
    QsfErr e = { 0 };
    if (qsf_json_type(value) == QSF_JSON_NULL) {
        snprintf(spec, sizeof spec, "%s=null", key);
    } else if (qsf_json_type(value) == QSF_JSON_BOOL) {
        snprintf(spec, sizeof spec, "%s=bool:%s", key, qsf_json_bool(value, false) ? "true" : "false");
    } else {
        snprintf(spec, sizeof spec, "%s=str:%s", key, qsf_json_string(value, NULL));
    }
    qsf_test_expect_ok(qsf_source_override(src, spec, &e), &e);
}

static void check_memory(Vocab *v, QsfLedger *ledger, uint64_t estimate, double ms) {
    QsfLedger now;
    qsf_ledger_snapshot(ledger, &now);
    uint64_t used = now.used[QSF_MEM_TOKENIZER];
    if (used > estimate || (double)estimate > 1.3 * (double)used || used > 12u << 20) {
        wrong(v, "memory", "uses %llu, estimated %llu", (unsigned long long)used,
              (unsigned long long)estimate);
    }
    printf("%-28s %u strings, %u wrong; %.2f MB, estimate %.2f MB, opened in %.0f ms\n", v->name, v->strings,
           v->wrong, (double)used / 1048576, (double)estimate / 1048576, ms);
}

/* Strings and properties that are wrong; -1 if the files are missing. */
static int check_vocab(const char *name, const QsfJson *about) {
    char path[256];
    QsfErr e = { 0 };
    QsfLedger ledger;
    QsfSource *src;
    snprintf(path, sizeof path, DIR "vocab/ggml-vocab-%s.gguf",
             qsf_json_string(qsf_json_get(about, "base"), NULL));
    const char *file = qsf_test_data(path);
    if (file == NULL) return -1;
    qsf_ledger_init(&ledger, 0);
    qsf_test_expect_ok(qsf_source_open(&src, file, &ledger, &e), &e);
    const QsfJson *overrides = qsf_json_get(about, "overrides");
    const char *key;
    for (size_t i = 0; i < qsf_json_size(overrides); i++) {
        const QsfJson *value = qsf_json_member(overrides, i, &key);
        override(src, key, value);
    }
    Vocab v = { .name = name, .about = about, .buf = malloc(QSF_PIECE_MAX + 8) };
    assert_non_null(v.buf);
    uint64_t estimate = qsf_tokenizer_estimate(src), start = qsf_now_ns();
    qsf_test_expect_ok(qsf_tokenizer_open(&v.t, src, &ledger, &e), &e);
    double ms = (double)(qsf_now_ns() - start) / 1e6;
    qsf_source_close(src);
    check_lines(&v, "ids", check_row);
    if (v.strings == 0) wrong(&v, "ids", "no strings");
    if (qsf_json_size(overrides) == 0) check_lines(&v, "invalid", check_invalid);
    check_properties(&v);
    check_memory(&v, &ledger, estimate, ms);
    qsf_tokenizer_close(v.t);
    QsfLedger now;
    qsf_ledger_snapshot(&ledger, &now);
    if (now.total != 0) wrong(&v, "close", "leaves %llu bytes", (unsigned long long)now.total);
    free(v.buf);
    qsf_ledger_destroy(&ledger);
    return (int)v.wrong;
}

static void test_oracle(void **state) {
    (void)state;
    size_t len;
    QsfErr e = { 0 };
    char *text = read_all(qsf_test_data(DIR "vocabs.json"), &len);
    if (text == NULL) skip();
    QsfJson *all = qsf_json_parse(text, len, &e);
    assert_non_null(all);
    const char *name;
    const QsfJson *about;
    int bad = 0, present = 0;
    for (const void *it = NULL; (it = qsf_json_next(all, it, &name, &about)) != NULL;) {
        int n = check_vocab(name, about);
        if (n > 0) bad += n;
        if (n >= 0) present++;
    }
    qsf_json_free(all);
    free(text);
    assert_true(present > 0);
    assert_int_equal(bad, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_oracle) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
