/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Damaged, truncated and inconsistent safetensors files and indices: QSF_E_MODEL with the path and what was
 * expected. */
#include "tests/harness/hf_rig.h"

#include <sys/stat.h>

#include "tests/harness/gguf_build.h"

/* Opens dir; no memory remains charged on failure. */
static int open_dir(QsfErr *e) {
    QsfSource *s;
    qsf_err_clear(e);
    int rc = qsf_source_open(&s, dir, &ledger, e);
    assert_int_equal(rc, e->code);
    qsf_source_close(s);
    assert_int_equal(ledger.total, 0);
    return rc;
}

static void expect_refused(const char *file, const char *part) {
    QsfErr e = { 0 };
    if (open_dir(&e) == QSF_OK) fail_msg("was accepted, expected: %s", part);
    qsf_test_expect_err(&e, QSF_E_MODEL, part);
    qsf_test_expect_err(&e, QSF_E_MODEL, dir);
    qsf_test_expect_err(&e, QSF_E_MODEL, file);
}

/* Writes model.safetensors: the length n (UINT64_MAX: the right one), the header, data_bytes zeros. */
static void write_file(uint64_t n, const char *header, size_t data_bytes) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    if (n == UINT64_MAX) n = strlen(header);
    for (unsigned i = 0; i < 8; i++) qsf_strbuf_addc(&b, (char)(unsigned char)(n >> (8 * i)));
    qsf_strbuf_adds(&b, header);
    for (size_t i = 0; i < data_bytes; i++) qsf_strbuf_addc(&b, 0);
    assert_int_equal(qsf_test_write_in(dir, "model.safetensors", b.data, b.len), 0);
    qsf_strbuf_free(&b);
}

#define NORM(range) "\"model.norm.weight\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":" range "}"

typedef struct Bad {
    const char *header;
    size_t data_bytes;
    const char *part;
} Bad;

static const Bad bad_headers[] = {
    /* clang-format off */
    { "[]", 0, "byte 8 should be '{'" },
    { " {}", 0, "byte 8 should be '{'" },
    { "{}x", 0, "expected the end of the text" },
    { "{\"a\"}", 0, "expected ':'" },
    { "{\"a\":1}", 0, "expected '{'" },
    { "{\"a\":{}", 0, "ends at byte" },
    { "{\"a\":[[[[[[]]]]]]}", 0, "expected '{'" },
    { "{\"\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "empty" },
    { "{\"a\\u0000b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "NUL" },
    { "{\"\xFF\":{}}", 0, "valid UTF-8" },
    { "{\"__metadata__\":[]}", 0, "expected '{'" },
    { "{\"__metadata__\":{\"a\":1}}", 0, "expected a string" },
    { "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "twice" },
    { "{\"a\":{}}", 0, "lacks one of" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "lacks one of" },
    { "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "lacks one of" },
    { "{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "lacks one of" },
    { "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "two members \"dtype\"" },
    { "{\"a\":{\"dtype\":\"f32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "unknown dtype 'f32'" },
    { "{\"a\":{\"dtype\":\"F32\\u0000\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "unknown dtype" },
    { "{\"a\":{\"dtype\\u0000\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "lacks one of" },
    { "{\"__metadata__\\u0000\":{}}", 0, "NUL" },
    { "{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "expected a string" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":4,\"data_offsets\":[0,4]}}", 4, "expected '['" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "0 or more" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", 4, "whole number" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1e0],\"data_offsets\":[0,4]}}", 4, "whole number" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[\"1\"],\"data_offsets\":[0,4]}}", 4, "whole number" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[18446744073709551616],\"data_offsets\":[0,4]}}", 4, "below 2^64" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0, "impossible shape" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[576460752303423489],\"data_offsets\":[0,4]}}", 4, "impossible shape" },
    { "{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1, "impossible shape" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "takes 8" },
    { "{\"a\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "takes 2" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "end before they begin" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4]}}", 4, "fewer than two" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4, "more than two" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 3, "truncated" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[18446744073709551611,18446744073709551615]}}", 4, "truncated" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5, "belong to no tensor" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "belong to no tensor" },
    { "{}", 1, "belong to no tensor" },
    { "{" NORM("[0,16]") "," NORM("[0,16]") "}", 16, "occurs twice" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}," NORM("[12,28]") "}", 28, "overlap" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}," NORM("[0,16]") "}", 16, "overlap" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}," NORM("[20,36]") "}", 36, "belong to no tensor" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}", 16, "'a' is not supported" },
    { "{\"model.layers.2.mlp.up_proj.weight\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}", 16, "num_hidden_layers is 2" },
    { "{\"model.layers.00.mlp.up_proj.weight\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}", 16, "is not supported in a model" },
    { "{\"model.norm.weight\":{\"dtype\":\"I32\",\"shape\":[4],\"data_offsets\":[0,16]}}", 16, "of dtype I32, expected F32" },
    { "{\"model.norm.weight\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}", 16, "2 dimensions, expected 1" },
    { "{\"model.norm.weight\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "0 dimensions, expected 1" },
    { "{\"model.norm.weight\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, "size 0" },
    { "{\"model.layers.0.self_attn.q_proj.weight\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}", 16, "4 heads of 6" },
    { "{\"lm_head.weight\":{\"dtype\":\"F32\",\"shape\":[1,4],\"data_offsets\":[0,16]}}", 16, "embedding are missing" },
    { "{\"model.embed_tokens.weight\":{\"dtype\":\"F32\",\"shape\":[1,4],\"data_offsets\":[0,16]}}", 16, "head are missing" },
    /* clang-format on */
};

static void test_headers(void **state) {
    (void)state;
    assert_int_equal(qsf_test_write_hf_dir(dir, NULL), 0);
    for (size_t i = 0; i < sizeof bad_headers / sizeof *bad_headers; i++) {
        write_file(UINT64_MAX, bad_headers[i].header, bad_headers[i].data_bytes);
        expect_refused("", bad_headers[i].part);
    }
    write_file(UINT64_MAX,
               "{\"lm_head.weight\":{\"dtype\":\"F32\",\"shape\":[1,4],\"data_offsets\":[0,16]},"
               "\"model.embed_tokens.weight\":{\"dtype\":\"F32\",\"shape\":[1,4],\"data_offsets\":[16,32]}}",
               32);
    expect_refused("model.safetensors", "vocab_size in config.json is 9");
}

/* The contents of a member that is not used may be nested, but not without limit. */
static void test_depth(void **state) {
    (void)state;
    QsfStrbuf b = QSF_STRBUF_INIT;
    assert_int_equal(qsf_test_write_hf_dir(dir, NULL), 0);
    qsf_strbuf_adds(&b, "{\"a\":{\"more\":");
    for (int i = 0; i < 100000; i++) qsf_strbuf_adds(&b, i % 2 ? "[" : "{\"x\":");
    write_file(UINT64_MAX, qsf_strbuf_str(&b), 0);
    expect_refused("model.safetensors", "at most 100 levels of nesting");
    qsf_strbuf_free(&b);
}

static void test_lengths(void **state) {
    static const uint64_t lengths[] = {
        0, 1, 3, 100000001, 1ull << 32, UINT64_MAX - 8, UINT64_MAX - 7, UINT64_MAX - 1
    };
    (void)state;
    assert_int_equal(qsf_test_write_hf_dir(dir, NULL), 0);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        write_file(lengths[i], "{}", 0);
        expect_refused("model.safetensors", "header has");
    }
    for (size_t n = 0; n < 10; n++) {
        assert_int_equal(qsf_test_write_in(dir, "model.safetensors", "\2\0\0\0\0\0\0\0{}", n), 0);
        expect_refused("model.safetensors", "truncated");
    }
}

static unsigned char *slurp(const char *name, size_t *len) {
    static unsigned char bytes[1 << 16];
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    *len = fread(bytes, 1, sizeof bytes, f);
    assert_int_equal(fclose(f), 0);
    assert_true(*len < sizeof bytes);
    return bytes;
}

/* Truncated anywhere, it is refused; with one byte of the header changed it is refused or the same kind of
 * model. */
static void test_cut_and_changed(void **state) {
    QsfErr e = { 0 };
    size_t len;
    (void)state;
    assert_int_equal(
        qsf_test_write_hf_dir(dir, &(QsfHfSpec){ .layers = 1, .hidden = 8, .ffn = 4, .tied = true }), 0);
    qsf_test_expect_ok(open_dir(&e), &e);
    unsigned char *b = slurp("model.safetensors", &len);
    size_t header = 8 + (b[0] | (size_t)b[1] << 8);
    for (size_t n = 0; n < len; n += n < 40 ? 1 : 37) {
        assert_int_equal(qsf_test_write_in(dir, "model.safetensors", b, n), 0);
        expect_refused("model.safetensors", "");
    }
    for (size_t i = 0; i < header; i += i < 40 ? 1 : 3) {
        static const unsigned char masks[] = { 0x01, 0x10, 0xFF };
        for (size_t m = 0; m < sizeof masks; m++) {
            b[i] ^= masks[m];
            assert_int_equal(qsf_test_write_in(dir, "model.safetensors", b, len), 0);
            if (open_dir(&e) != QSF_OK) assert_true(e.code == QSF_E_MODEL && strstr(e.msg, dir) != NULL);
            b[i] ^= masks[m];
        }
    }
}

/* --- several files --- */

static void write_index(const char *text) {
    assert_int_equal(qsf_test_write_in(dir, "model.safetensors.index.json", text, strlen(text)), 0);
}

static void test_index(void **state) {
#define PLACE "\"model.norm.weight\":\"model-00002-of-00002.safetensors\""
    static const struct {
        const char *text, *file, *part;
    } bad[] = {
        /* clang-format off */
        { "", "index.json", "expected '{'" },
        { "{}", "index.json", "no \"weight_map\"" },
        { "{\"weight_map\":{}}", "index.json", "no \"weight_map\"" },
        { "{\"weight_map\":[]}", "index.json", "expected '{'" },
        { "{\"weight_map\":{" PLACE "},\"weight_map\":{}}", "index.json", "twice" },
        { "{\"weight_map\":{\"a\":1}}", "index.json", "expected a string" },
        { "{\"weight_map\":{" PLACE "}", "index.json", "ends at byte" },
        { "{\"weight_map\":{" PLACE "}} x", "index.json", "the end of the text" },
        { "{\"weight_map\":{\"a\":\"../model.safetensors\"}}", "index.json", "in the same directory" },
        { "{\"weight_map\":{\"a\":\"/etc/x.safetensors\"}}", "index.json", "in the same directory" },
        { "{\"weight_map\":{\"a\":\".safetensors\"}}", "index.json", "in the same directory" },
        { "{\"weight_map\":{\"a\":\"config.json\"}}", "index.json", "in the same directory" },
        { "{\"weight_map\":{\"a\":\"x\\u0000.safetensors\"}}", "index.json", "in the same directory" },
        { "{\"weight_map\":{\"a\":\"gone.safetensors\"}}", "gone.safetensors", "cannot open" },
        { "{\"weight_map\":{" PLACE ",\"a\":\"model-00001-of-00002.safetensors\"}}", "00001-of-00002", "lacks the tensor 'a'" },
        { "{\"weight_map\":{\"model.norm.weight\":\"model-00001-of-00002.safetensors\"}}", "00001-of-00002",
          "lacks the tensor 'model.norm.weight'" },
        /* clang-format on */
    };
    (void)state;
    assert_int_equal(qsf_test_write_hf_dir(dir, &(QsfHfSpec){ .shards = true }), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_index(bad[i].text);
        expect_refused(bad[i].file, bad[i].part);
    }
    write_index("{\"weight_map\":{" PLACE "}}"); /* one shard of two: the embedding is in the other */
    expect_refused("", "embedding are missing");
}

static void test_shards(void **state) {
    char one[128], two[128];
    QsfErr e = { 0 };
    (void)state;
    assert_int_equal(qsf_test_write_hf_dir(dir, &(QsfHfSpec){ .shards = true }), 0);
    qsf_test_expect_ok(open_dir(&e), &e);
    snprintf(one, sizeof one, "%s/model-00001-of-00002.safetensors", dir);
    snprintf(two, sizeof two, "%s/model-00002-of-00002.safetensors", dir);
    assert_int_equal(unlink(two), 0);
    expect_refused("00002-of-00002", "cannot open");
    assert_int_equal(mkdir(two, 0700), 0);
    expect_refused("00002-of-00002", "is a directory");
    assert_int_equal(rmdir(two), 0);
    assert_int_equal(link(one, two), 0); /* every tensor of it twice */
    write_index("{\"weight_map\":{\"model.embed_tokens.weight\":\"model-00001-of-00002.safetensors\","
                "\"model.layers.0.mlp.up_proj.weight\":\"model-00002-of-00002.safetensors\"}}");
    expect_refused("00002-of-00002", "appears twice");
}

static void test_other_files(void **state) {
    static const char *const names[] = { "config.json", "tokenizer.json" };
    QsfErr e = { 0 };
    char path[128];
    QsfSource *s;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(qsf_test_write_hf_dir(dir, NULL), 0);
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        assert_int_equal(unlink(path), 0);
        expect_refused(names[i], i == 0 ? "is missing" : "without tokenizer.json");
    }
    assert_int_equal(qsf_test_write_hf_dir(dir, &(QsfHfSpec){ .vocab = 6 }), 0);
    expect_refused("tokenizer.json",
                   "has 7 tokens, but the model's vocab_size is 6"); /* two added ones are dropped */
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    assert_int_equal(qsf_source_open(&s, path, &ledger, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "open the directory");
}

/* If the header does not fit the budget, the error says so, and nothing remains charged. */
static void test_budget(void **state) {
    QsfErr e = { 0 };
    QsfSource *s;
    unsigned refused = 0;
    (void)state;
    assert_int_equal(qsf_test_write_hf_dir(dir, NULL), 0);
    for (uint64_t limit = 4096; limit < 1 << 20; limit += 4096) {
        qsf_ledger_set_limit(&ledger, limit);
        qsf_err_clear(&e);
        if (qsf_source_open(&s, dir, &ledger, &e) == QSF_OK) break;
        assert_int_equal(e.code, QSF_E_BUDGET);
        assert_int_equal(ledger.total, 0);
        refused++;
    }
    assert_non_null(s);
    assert_true(refused > 10);
    qsf_source_close(s);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_headers), TEST(test_depth),  TEST(test_lengths),     TEST(test_cut_and_changed),
        TEST(test_index),   TEST(test_shards), TEST(test_other_files), TEST(test_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
