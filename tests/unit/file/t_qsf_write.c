/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The writer of QSF files: called directly, with everything it supports, out of order, and when it cannot
 * write. */
#include "tests/harness/source_rig.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "src/file/dtype.h"
#include "src/file/qsf/fields.h"
#include "src/file/qsf/names.h"
#include "src/file/qsf/verify.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_made.h"

static void expect_verified(const char *path) {
    QsfErr e = { 0 };
    QsfVerifyReport r;
    qsf_test_expect_ok(qsf_verify_file(path, &ledger, &r, &e), &e);
    assert_int_equal(r.n_layers, 2);
}

/* The reader's verdict on m; the verifier's must be the same. */
static int try_image(const QsfImage *m, QsfErr *e) {
    const char *path = qsf_test_tmp("changed.qsf");
    QsfSource *s;
    QsfVerifyReport r;
    assert_int_equal(qsf_test_write_file(path, m->b, m->len), 0);
    qsf_err_clear(e);
    int rc = qsf_source_open(&s, path, &ledger, e);
    if (rc == QSF_OK) qsf_source_close(s);
    assert_int_equal(qsf_verify_file(path, &ledger, &r, NULL), rc);
    unlink(path);
    return rc;
}

/* --- files written call by call --- */

typedef struct Hand {
    bool misuse;          /* a call in the middle that fails */
    uint32_t outlier_row; /* of a matrix of 4 rows */
    uint32_t code;        /* of that matrix of 4 x 256 */
    uint32_t block;
    uint32_t gate_cols; /* of the gate's bias; 0: none */
} Hand;

/* For the latest tensor: n zeros. */
static void zeros_data(QsfWriter *w, size_t n) {
    static const unsigned char zeros[80000];
    QsfErr e = { 0 };
    qsf_test_expect_ok(qsf_write_data(w, zeros, n, &e), &e);
}

static void hand_layer(QsfWriter *w, const Hand *h, QsfErr *e) {
    unsigned char outlier[10] = { 0 };
    float biases[128 + 64];
    uint64_t bytes = 0;
    uint32_t dtype;
    qsf_test_expect_ok(qsf_write_layer(w, (uint8_t)h->code, 0.25f, e), e);
    qsf_test_expect_ok(qsf_write_tensor(w, QSFT_Q, QSFF_LAYER_CODE, 4, 256, e), e);
    assert_true(qsf_code_dtype((uint8_t)h->code, h->block, &dtype) && qsf_code_bytes(dtype, 4, 256, &bytes));
    zeros_data(w, (size_t)bytes);
    if (h->misuse) assert_int_equal(qsf_write_data(w, "x", 1, NULL), QSF_E_RUNTIME);
    qsf_test_expect_ok(qsf_write_tensor(w, QSFT_OUTLIERS, QSFF_GGML + 24, 1, 10, e), e);
    qsf_image_put(outlier, 4, h->outlier_row);
    qsf_image_put(outlier + 4, 4, 255);
    qsf_test_expect_ok(qsf_write_data(w, outlier, sizeof outlier, e), e);
    for (int i = 0; i < 128 + 64; i++) biases[i] = (float)i;
    if (h->gate_cols > 0) {
        qsf_test_expect_ok(qsf_write_tensor(w, QSFT_GATE_BIAS, QSFF_F32, 1, h->gate_cols, e), e);
        qsf_test_expect_ok(qsf_write_data(w, biases + 3, h->gate_cols * sizeof *biases, e), e);
    }
    qsf_test_expect_ok(qsf_write_tensor(w, QSFT_FFN_BIASES, QSFF_F32, 1, 128 + 64, e), e);
    qsf_test_expect_ok(qsf_write_data(w, biases, sizeof biases, e), e);
}

/* An unknown family whose metadata is nearly empty: two layers, LayerNorm, a tied head. */
static int write_by_hand(const char *path, const Hand *h, QsfErr *e) {
    const char *gguf = qsf_test_tmp("j.gguf");
    float norm[64], bias[64];
    QsfWriter w;
    assert_int_equal(qsf_test_write_tiny_llama(gguf, NULL), 0);
    QsfSource *s = open_ok(gguf);
    unlink(gguf);
    QsfWriteSpec spec = { .meta = s, .head = { .flags = QSFF_LINES, .block = h->block } };
    qsf_test_expect_ok(qsf_fields_of_source(&spec.head, s, e), e);
    qsf_test_expect_ok(qsf_source_override(s, "general.architecture=str:foo", e), e);
    qsf_test_expect_ok(qsf_source_override(s, "general.name=null", e), e);
    qsf_test_expect_ok(qsf_source_override(s, "split.count=int:1", e), e);
    QsfStrbuf extra = QSF_STRBUF_INIT;
    qsf_meta_put_str(&extra, "extra.key", 9);
    qsf_meta_put_le(&extra, QSF_META_I16, 4);
    qsf_meta_put_le(&extra, 0xFFFE, 2);
    spec.extra = &extra;
    spec.n_extra = 1;
    spec.head.arch = QSFF_CUSTOM;
    spec.head.act = QSFF_BY_META;
    spec.head.norm = QSFF_LAYER_NORM;
    qsf_test_expect_ok(qsf_write_open(&w, path, &spec, e), e);
    qsf_strbuf_free(&extra);
    qsf_source_close(s);
    qsf_test_expect_ok(qsf_write_embedding(&w, QSFF_F32, 300, 64, e), e);
    zeros_data(&w, 300 * 64 * 4);
    for (int i = 0; i < 2; i++) hand_layer(&w, h, e);
    for (int i = 0; i < 64; i++) {
        norm[i] = 1.0f + (float)i / 1024.0f; /* exact in fp16 */
        /* too large, the smallest, a tie */
        bias[i] = i == 0 ? 1e9f : i == 1 ? 5.9604645e-8f : i == 2 ? 1.00048828125f : -(float)i;
    }
    qsf_test_expect_ok(qsf_write_final(&w, norm, bias, true, false, e), e);
    int rc = qsf_write_finish(&w, e);
    assert_null(w.out.path);
    return rc;
}

static const QsfTensor *tensor_of(const QsfSource *s, const char *name, uint32_t dtype, uint64_t cols,
                                  uint64_t rows) {
    const QsfTensor *t = qsf_source_find_tensor(s, name);
    if (t == NULL) fail_msg("no %s", name);
    assert_int_equal(t->dtype, dtype);
    assert_int_equal(t->ne[0], cols);
    assert_int_equal(t->ne[1], rows);
    return t;
}

static float float_at(const QsfSource *s, const QsfTensor *t, uint64_t i) {
    float x;
    unsigned char *b = tensor_bytes(s, t);
    memcpy(&x, b + 4 * i, sizeof x);
    free(b);
    return x;
}

static void test_by_hand(void **state) {
    (void)state;
    const char *path = qsf_test_tmp("k.qsf");
    const Hand plain = { .code = QSFF_2BIT, .outlier_row = 3, .gate_cols = 128 };
    QsfErr e = { 0 };
    uint32_t v = 0;
    float theta = 0;
    qsf_test_expect_ok(write_by_hand(path, &plain, &e), &e);
    QsfSource *s = open_ok(path);
    expect_verified(path);
    tensor_of(s, "blk.1.attn_q.weight", QK_GGML_QSF2, 256, 4);
    tensor_of(s, "blk.1.attn_q.weight.outliers", 24, 10, 1); /* no engine mistakes them for something else */
    const QsfTensor *up = tensor_of(s, "blk.1.ffn_up.bias", 0, 128, 1),
                    *down = tensor_of(s, "blk.1.ffn_down.bias", 0, 64, 1);
    assert_true(float_at(s, up, 127) > 126.5f && float_at(s, up, 127) < 127.5f);
    const float third = float_at(s, tensor_of(s, "blk.1.ffn_gate.bias", 0, 128, 1), 0);
    assert_true(third > 2.5f && third < 3.5f);
    assert_true(float_at(s, down, 0) > 127.5f && float_at(s, down, 0) < 128.5f);
    tensor_of(s, "output_norm.weight", 1, 64, 1);
    unsigned char *b = tensor_bytes(s, tensor_of(s, "output_norm.bias", 1, 64, 1));
    static const unsigned char halves[] = {
        0xFF, 0x7B, 0x01, 0x00, 0x00, 0x3C, 0x00, 0xC2
    }; /* 65504, 2^-24, 1, -3 */
    assert_memory_equal(b, halves, sizeof halves);
    free(b);
    assert_false(qsf_meta_has(s, "general.name")); /* hidden by the user */
    assert_false(qsf_meta_has(s, "split.count"));
    int64_t extra = 0;
    qsf_test_expect_ok(qsf_meta_i64(s, "extra.key", 0, &extra, &e), &e);
    assert_int_equal(extra, -2);
    qsf_test_expect_ok(qsf_meta_u32(s, "foo.block_count", 0, &v, &e), &e);
    assert_int_equal(v, 2);
    qsf_test_expect_ok(qsf_meta_u32(s, "foo.attention.head_count_kv", 0, &v, &e), &e);
    assert_int_equal(v, 2);
    qsf_test_expect_ok(qsf_meta_f32(s, "foo.rope.freq_base", 0, &theta, &e), &e);
    assert_true(theta > 9999.0f && theta < 10001.0f);
    qsf_source_close(s);
    assert_int_equal(ledger.total, 0);
    unlink(path);
}

static void test_wrong_hand_made(void **state) {
    (void)state;
    const char *path = qsf_test_tmp("l.qsf");
    QsfErr e = { 0 };
    QsfVerifyReport r;
    const Hand misused = { .code = QSFF_4BIT, .misuse = true };
    assert_int_equal(write_by_hand(path, &misused, &e), QSF_E_RUNTIME);
    assert_int_not_equal(access(path, F_OK), 0);
    qsf_err_clear(&e);
    const Hand outside = { .code = QSFF_TERNARY, .outlier_row = 4 };
    qsf_test_expect_ok(write_by_hand(path, &outside, &e), &e);
    assert_int_equal(qsf_verify_file(path, &ledger, &r, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "is row 4, column 255 of a matrix of 4 x 256");
    qsf_err_clear(&e);
    const Hand wide = { .code = QSFF_3BIT, .block = 256 };
    qsf_test_expect_ok(write_by_hand(path, &wide, &e), &e);
    QsfSource *s = open_ok(path);
    expect_verified(path);
    const QsfTensor *t = tensor_of(s, "blk.0.attn_q.weight", QK_GGML_QSF3 + QSF_DTYPE_OF_256, 256, 4);
    assert_int_equal(t->bytes, 400);
    assert_false(qsf_dtype(t->dtype)->supported);
    qsf_source_close(s);
    unlink(path);
}

/* Sections may be in any order, but may not overlap. */
static void test_order(void **state) {
    (void)state;
    const char *path = qsf_test_tmp("m.qsf");
    const Hand plain = { .code = QSFF_4BIT };
    QsfErr e = { 0 };
    unsigned char entry[32];
    qsf_test_expect_ok(write_by_hand(path, &plain, &e), &e);
    QsfImage m = load(path);
    unlink(path);
    QsfImageMap at = qsf_image_map(&m);
    unsigned char *index = m.b + at.index;
    memcpy(entry, index, 32);
    memcpy(index, index + 32, 32);
    memcpy(index + 32, entry, 32);
    qsf_image_fix(&m, &at);
    qsf_test_expect_ok(try_image(&m, &e), &e);
    memcpy(index, index + 32, 32);
    qsf_image_fix(&m, &at);
    assert_int_equal(try_image(&m, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "overlaps what ends at");
    free(m.b);
}

/* --- the writer --- */

static unsigned files_in(const char *dir) {
    unsigned n = 0;
    DIR *d = opendir(dir);
    while (d != NULL && readdir(d) != NULL) n++;
    if (d != NULL) closedir(d);
    return n - 2;
}

static void test_writer_fails(void **state) {
    (void)state;
    char dir[300], path[400];
    const char *gguf = qsf_test_tmp("h.gguf");
    QsfErr e = { 0 };
    (void)snprintf(dir, sizeof dir, "%s.XXXXXX", qsf_test_tmp("write"));
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/out.qsf", dir);
    assert_int_equal(qsf_test_write_tiny_llama(gguf, NULL), 0);
    QsfSource *s = open_ok(gguf);
    struct rlimit old, small = { 100000, 100000 };
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0); /* like a full disk: in the middle of a tensor */
    assert_int_equal(qsf_test_carry(s, path, 0, &e), QSF_E_RUNTIME);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    qsf_test_expect_err(&e, QSF_E_RUNTIME, "out.qsf: cannot write at byte offset");
    assert_int_equal(files_in(dir), 0);
    qsf_err_clear(&e);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(qsf_test_carry(s, path, 0, &e), QSF_E_USAGE);
    qsf_test_expect_err(&e, QSF_E_USAGE, "exists and is not a regular file");
    assert_int_equal(rmdir(path), 0);
    qsf_err_clear(&e);
    assert_int_equal(qsf_test_carry(s, "/nowhere/at/all.qsf", 0, &e), QSF_E_RUNTIME);
    qsf_test_expect_err(&e, QSF_E_RUNTIME, "/nowhere/at/all.qsf");
    qsf_err_clear(&e);
    assert_int_equal(qsf_source_override(s, "llama.embedding_length=int:66", &e), QSF_OK);
    assert_int_equal(qsf_test_carry(s, path, 0, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "does not match a model of");
    assert_int_equal(files_in(dir), 0);
    qsf_err_clear(&e);
    qsf_source_close(s);
    unlink(gguf);
    assert_int_equal(rmdir(dir), 0);
}

/* A tiny model whose header and metadata are stored in spec; the caller closes it. */
static QsfSource *tiny_spec(QsfWriteSpec *spec) {
    const char *gguf = qsf_test_tmp("i.gguf");
    QsfErr e = { 0 };
    assert_int_equal(qsf_test_write_tiny_llama(gguf, NULL), 0);
    QsfSource *s = open_ok(gguf);
    unlink(gguf);
    *spec = (QsfWriteSpec){ .meta = s };
    qsf_test_expect_ok(qsf_fields_of_source(&spec->head, s, &e), &e);
    return s;
}

/* Calls out of order are refused, and have no effect. */
static void test_writer_misuse(void **state) {
    (void)state;
    const char *path = qsf_test_tmp("i.qsf");
    QsfErr e = { 0 };
    QsfWriter w;
    QsfWriteSpec spec;
    QsfSource *s = tiny_spec(&spec);
    assert_int_equal(spec.head.n_vocab, 300);
    assert_int_equal(spec.head.head_dim, 16);
    assert_int_equal(spec.head.bos, 1);
    assert_int_equal(spec.head.pad, QSFF_NO_TOKEN);
    for (int k = 0; k < 5; k++) {
        qsf_err_clear(&e);
        qsf_test_expect_ok(qsf_write_open(&w, path, &spec, &e), &e);
        int rc = k == 0 ? qsf_write_layer(&w, QSFF_MIXED, 0, &e)
                        : qsf_write_embedding(&w, QSFF_F32, 300, 64, &e);
        if (k == 1) rc = qsf_write_data(&w, "x", 300 * 64 * 4 + 1, &e);
        if (k == 2) rc = qsf_write_layer(&w, QSFF_MIXED, 0, &e); /* the rows are missing */
        if (k == 3) rc = qsf_write_finish(&w, &e);
        if (k == 4) rc = qsf_write_embedding(&w, QSFF_F32, 300, 64, &e);
        assert_int_equal(rc, QSF_E_RUNTIME);
        qsf_test_expect_err(&e, QSF_E_RUNTIME, "internal: ");
        if (k != 3) assert_int_equal(qsf_write_finish(&w, NULL), QSF_E_RUNTIME);
        qsf_write_discard(&w);
        assert_int_not_equal(access(path, F_OK), 0);
    }
    qsf_source_close(s);
}

/* The writer does not start what readers would refuse. */
static void test_gate_bias_length(void **state) {
    (void)state;
    const char *path = qsf_test_tmp("n.qsf");
    QsfErr e = { 0 };
    QsfWriter w;
    QsfWriteSpec spec;
    QsfSource *s = tiny_spec(&spec);
    qsf_test_expect_ok(qsf_write_open(&w, path, &spec, &e), &e);
    qsf_test_expect_ok(qsf_write_embedding(&w, QSFF_F32, 300, 64, &e), &e);
    zeros_data(&w, 300 * 64 * 4);
    qsf_test_expect_ok(qsf_write_layer(&w, QSFF_MIXED, 0, &e), &e);
    assert_int_equal(qsf_write_tensor(&w, QSFT_GATE_BIAS, QSFF_F32, 1, spec.head.ffn - 1, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "does not have the length of the FFN dimension");
    qsf_write_discard(&w);
    qsf_source_close(s);
}

int main(void) {
    qsf_ledger_init(&ledger, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),       cmocka_unit_test(test_wrong_hand_made),
        cmocka_unit_test(test_order),         cmocka_unit_test(test_writer_fails),
        cmocka_unit_test(test_writer_misuse), cmocka_unit_test(test_gate_bias_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
