/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Named tensors of QSF files: tensors of any name and shape are read back unchanged and written as GGUF
 * again; lists of names that do not match the tensors. */
#include "tests/harness/source_rig.h"

#include "src/convert/calibrate/tensor_uses.h"
#include "src/convert/pack/gguf_out.h"
#include "src/convert/pack/pack.h"
#include "src/file/qsf/names.h"
#include "src/file/qsf/verify.h"
#include "src/file/rows.h"
#include "tests/harness/gguf_build.h"

enum { HIDDEN = 64, VOCAB = 260, LAYERS = 3 };

static char gguf[256], qsf[256], back[256];

typedef struct Shape {
    const char *name;
    uint32_t n_dims;
    uint64_t ne[4];
    uint32_t dtype; /* F32 or BF16 */
} Shape;

/* Names without a type, types with other shapes than theirs, and a layer (2) without tensors. */
static const Shape shapes[] = {
    { "token_embd.weight", 2, { HIDDEN, VOCAB }, QK_GGML_F32 },
    { "blk.0.attn_norm.weight", 1, { HIDDEN }, QK_GGML_F32 },
    { "blk.0.attn_q_norm.weight", 2, { 16, 4 }, QK_GGML_F32 }, /* a vector for each head */
    { "blk.0.attn_q.weight", 3, { HIDDEN, 4, 8 }, QK_GGML_F32 },
    { "blk.0.ffn_up.bias", 1, { 5 }, QK_GGML_F32 }, /* no ffn_down.bias */
    { "blk.0.ssm_a", 1, { 7 }, QK_GGML_F32 },
    { "blk.0.mix.weight", 4, { 3, 1, 5, 2 }, QK_GGML_F32 },
    { "blk.0.max.weight", 1, { 2 }, QK_GGML_F32 },
    { "blk.0.long_name.weight", 1, { 3 }, QK_GGML_F32 },
    { "blk.1.one_row.weight", 2, { HIDDEN, 1 }, QK_GGML_F32 },
    { "blk.1.attn_k_b.weight", 3, { 32, 32, 2 }, QK_GGML_F32 },
    { "per_token_.weight", 2, { 32, VOCAB }, QK_GGML_F32 },
    { "blk.3.after_the_last.weight", 1, { 4 }, QK_GGML_F32 },
    { "output.weight", 2, { 32, VOCAB }, QK_GGML_F32 }, /* not of the hidden dimension */
    { "token_embd_norm.weight", 1, { HIDDEN }, QK_GGML_F32 },
    { "output_norm.weight", 1, { HIDDEN }, QK_GGML_BF16 }, /* the final section has F16 and F32 */
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static void put_metadata(QsfGgufBuild *b) {
    const int32_t kv_heads[LAYERS] = { 0, 2, 0 };
    qsf_gb_str(b, "general.architecture", "unheard");
    qsf_gb_u32(b, "unheard.block_count", LAYERS);
    qsf_gb_u32(b, "unheard.embedding_length", HIDDEN);
    qsf_gb_u32(b, "unheard.context_length", 64);
    qsf_gb_u32(b, "unheard.attention.head_count", 0);
    qsf_gb_array(b, "unheard.attention.head_count_kv", QSF_META_I32, LAYERS, kv_heads, sizeof kv_heads);
    qsf_gb_tiny_vocab(b, VOCAB);
}

static void write_model(void) {
    QsfGgufBuild b = { 0 };
    put_metadata(&b);
    for (size_t i = 0; i < N_SHAPES; i++) {
        uint64_t n = 1;
        for (uint32_t d = 0; d < shapes[i].n_dims; d++) n *= shapes[i].ne[d];
        float *v = malloc(n * sizeof *v);
        assert_non_null(v);
        for (uint64_t k = 0; k < n; k++) v[k] = (float)(k * 31 + i);
        qsf_gb_tensor(&b, shapes[i].name, shapes[i].dtype, shapes[i].n_dims, shapes[i].ne, v,
                      shapes[i].dtype == 0 ? n * 4 : n * 2);
        free(v);
    }
    assert_int_equal(qsf_gb_write(&b, gguf), 0);
    qsf_gb_free(&b);
}

static void convert(const QsfPackOptions *o) {
    QsfErr e = { 0 };
    QsfSource *s = open_ok(gguf);
    qsf_test_expect_ok(qsf_pack(s, qsf, o, NULL, &e), &e);
    qsf_source_close(s);
}

/* Every tensor of a is in b, with the same dimensions, type and rows. */
static void same_tensors(const QsfSource *a, const QsfSource *b) {
    QsfErr e = { 0 };
    assert_int_equal(qsf_source_n_tensors(a), qsf_source_n_tensors(b));
    for (uint64_t i = 0; i < qsf_source_n_tensors(a); i++) {
        const QsfTensor *t = qsf_source_tensor(a, i), *u = qsf_source_find_tensor(b, t->name);
        if (u == NULL) fail_msg("no tensor %s", t->name);
        if (t->n_dims != u->n_dims || memcmp(t->ne, u->ne, sizeof t->ne) != 0 || t->dtype != u->dtype)
            fail_msg("%s has another shape or type", t->name);
        unsigned char *x = malloc((size_t)t->bytes), *y = malloc((size_t)t->bytes);
        assert_true(x != NULL && y != NULL);
        qsf_test_expect_ok(qsf_source_read_bytes(a, t, 0, x, (size_t)t->bytes, &e), &e);
        qsf_test_expect_ok(qsf_source_read_bytes(b, u, 0, y, (size_t)t->bytes, &e), &e);
        assert_memory_equal(x, y, (size_t)t->bytes);
        free(x);
        free(y);
    }
}

static void verify_ok(void) {
    QsfErr e = { 0 };
    QsfVerifyReport r;
    qsf_test_expect_ok(qsf_verify_file(qsf, &ledger, &r, &e), &e);
    assert_int_equal(r.n_tensors, N_SHAPES);
}

static void test_any_shape(void **state) {
    (void)state;
    static const QsfPackOptions ways[] = {
        { .flags = 0 },
        { .flags = QSFF_PAGES | QSFF_LINES, .x16 = true },
        { .flags = QSFF_PAGES | QSFF_LINES, .x16 = true, .codec = QSFF_LZ4 },
    };
    const QsfGgufOptions as_gguf = { .dry = false };
    QsfGgufReport r;
    QsfErr e = { 0 };
    write_model();
    QsfSource *a = open_ok(gguf);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        convert(&ways[i]);
        verify_ok();
        QsfSource *b = open_ok(qsf);
        same_tensors(a, b);
        qsf_test_expect_ok(qsf_write_gguf(b, back, &as_gguf, &r, &e), &e);
        QsfSource *c = open_ok(back);
        same_tensors(a, c);
        assert_int_equal(qsf_meta_count(a), qsf_meta_count(c));
        qsf_source_close(c);
        qsf_source_close(b);
    }
    qsf_source_close(a);
}

/* Finds the bytes of a string in the file; the next ones after `at`. */
static size_t find_text(const QsfImage *m, const char *text, size_t at) {
    const size_t n = strlen(text);
    for (size_t i = at; i + n <= m->len; i++)
        if (memcmp(m->b + i, text, n) == 0) return i;
    fail_msg("no '%s' in the file", text);
    return 0;
}

static void expect_damage(const QsfImage *m, const char *words) {
    QsfErr e = { 0 };
    QsfVerifyReport r;
    QsfSource *s;
    assert_int_equal(qsf_test_write_file(qsf, m->b, m->len), 0);
    assert_int_equal(qsf_verify_file(qsf, &ledger, &r, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, words);
    qsf_err_clear(&e);
    assert_int_equal(qsf_source_open(&s, qsf, &ledger, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, words);
}

/* Texts of the metadata, each replaced by another of the same length, with correct checksums. */
static void test_wrong_names(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *words;
    } cases[] = {
        { "qsf.tensor.names", "qsf.tensor.namex", "expected 4 for each of the 0 names" },
        { "qsf.tensor.dims", "qsf.tensor.dimx", "has 0 elements, expected 4 for each" },
        { "blk.0.ssm_a", "blk.1.ssm_a", "'blk.0.mix.weight' of layer 0 follows one of a later section" },
        { "blk.1.one_row.weight", "blk.0.one_row.weight", "'blk.0.one_row.weight' is missing" },
        { "blk.0.long_name.weight", "blk.1.long_name.weight", "has no name in the metadata" },
        { "blk.0.max.weight", "blk.0.mix.weight", "'blk.0.mix.weight' occurs twice" },
        { "blk.0.long_name.weight", "blk.0.attn_norm.weight", "'blk.0.attn_norm.weight' appears twice" },
        { "per_token_.weight", "token_embd.weight", "'token_embd.weight' appears twice" },
        { "blk.1.one_row.weight", "blk.1.one\0row.weight", "contains a NUL byte" },
    };
    write_model();
    const QsfPackOptions o = { .flags = QSFF_LINES };
    convert(&o);
    QsfImage m = load(qsf);
    const QsfImageMap at = qsf_image_map(&m);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t n = strlen(cases[i].from), where = find_text(&m, cases[i].from, (size_t)at.meta);
        memcpy(m.b + where, cases[i].to, n);
        qsf_image_fix(&m, &at);
        expect_damage(&m, cases[i].words);
        memcpy(m.b + where, cases[i].from, n);
    }
    free(m.b);
}

/* The dimensions of the first named tensor, blk.0.attn_q_norm.weight (16, 4), and the number of norms. */
static void test_wrong_numbers(void **state) {
    (void)state;
    static const struct {
        unsigned dim;
        uint64_t v;
        const char *words;
    } cases[] = {
        { 0, 15, "does not match the metadata (qsf.tensor.dims)" },
        { 1, 5, "does not match the metadata" },
        { 2, UINT64_MAX / 2, "does not match the metadata" },
        { 3, 1, "impossible dimensions" }, /* after a 0 */
        { 0, 0, "impossible dimensions" },
        { 1, UINT64_MAX, "element 1 is out of range" },
    };
    write_model();
    const QsfPackOptions o = { .flags = QSFF_LINES };
    convert(&o);
    QsfImage m = load(qsf);
    const QsfImageMap at = qsf_image_map(&m);
    const size_t dims = find_text(&m, "qsf.tensor.dims", (size_t)at.meta) + strlen("qsf.tensor.dims") + 16;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char *p = m.b + dims + 8 * cases[i].dim;
        const uint64_t old = qsf_image_get(p, 8);
        qsf_image_put(p, 8, cases[i].v);
        qsf_image_fix(&m, &at);
        expect_damage(&m, cases[i].words);
        qsf_image_put(p, 8, old);
    }
    const size_t norms = find_text(&m, "qsf.final_norm", (size_t)at.meta) + strlen("qsf.final_norm") + 4;
    qsf_image_put(m.b + norms, 4, 3);
    qsf_image_fix(&m, &at);
    expect_damage(&m, "'qsf.final_norm' is 3, expected 0 to 2");
    free(m.b);
}

static int index_one(const char *name, uint32_t n_dims, QsfErr *e) {
    uint32_t first[4];
    QsfNamedTensor t = { name, n_dims, { 1, 1, 1, 1 } };
    QsfNamed l = { .tensor = &t, .n = 1, .n_layers = 2, .first = first };
    return qsf_named_index(&l, "x.qsf", e);
}

static void test_lengths(void **state) {
    (void)state;
    char name[QSFF_NAME_MAX + 2];
    QsfErr e = { 0 };
    memset(name, 'n', sizeof name);
    name[QSFF_NAME_MAX] = '\0';
    qsf_test_expect_ok(index_one(name, 4, &e), &e);
    name[QSFF_NAME_MAX] = 'n';
    name[QSFF_NAME_MAX + 1] = '\0';
    assert_int_equal(index_one(name, 4, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "has 128 bytes, expected 1 to 127");
    qsf_err_clear(&e);
    assert_int_equal(index_one("", 1, &e), QSF_E_MODEL);
    qsf_err_clear(&e);
    assert_int_equal(index_one("n", 0, &e), QSF_E_MODEL);
    assert_int_equal(qsf_named_section("blk.1.x", 2), 1);
    assert_int_equal(qsf_named_section("blk.2.x", 2), 2);
    assert_int_equal(qsf_named_section("blk.01.x", 2), 2);
    assert_int_equal(qsf_named_section("output.weight", 2), 2);
}

/* A file of an architecture that runs: its program decides. */
static void test_uses(void **state) {
    (void)state;
    static const struct {
        const char *name;
        QsfUse use;
        uint32_t dtype; /* as 8bit */
        bool x16;
    } rows[] = {
        { "blk.1.ssm_in.weight", QSF_USE_LINEAR, QK_GGML_Q8_0, true },
        { "blk.1.ssm_x.weight", QSF_USE_LINEAR, QK_GGML_Q8_0, true },
        { "blk.1.ssm_out.weight", QSF_USE_LINEAR, QK_GGML_Q8_0, true },
        { "blk.1.ssm_dt.weight", QSF_USE_LINEAR, QK_GGML_F16, false }, /* rows of 4 elements */
        { "blk.1.ssm_conv1d.weight", QSF_USE_KEEP, QK_GGML_F32, false },
        { "blk.1.ssm_a", QSF_USE_KEEP, QK_GGML_F32, false },
        { "token_embd.weight", QSF_USE_LINEAR, QK_GGML_Q8_0, false },
    };
    QsfErr e = { 0 };
    QsfUses uses;
    QsfPackOptions o = { .flags = QSFF_LINES, .x16 = true, .codec = QSFF_LZ4, .uses = &uses };
    assert_int_equal(qsf_test_write_tiny_mamba(gguf, 1), 0);
    QsfSource *s = open_ok(gguf);
    qsf_test_expect_ok(qsf_uses_of_source(&uses, s, &ledger, &e), &e);
    assert_true(uses.n == qsf_source_n_tensors(s) && uses.n_layers == 2);
    qsf_test_expect_ok(qsf_pack_type_parse(&o.type, "8bit", &e), &e);
    qsf_test_expect_ok(qsf_pack(s, qsf, &o, NULL, &e), &e);
    QsfSource *b = open_ok(qsf);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const QsfTensor *t = qsf_source_find_tensor(s, rows[i].name);
        const QsfTensor *u = qsf_source_find_tensor(b, rows[i].name);
        assert_true(t != NULL && u != NULL);
        assert_int_equal(uses.tensor[t - qsf_source_tensor(s, 0)].use, rows[i].use);
        if (u->dtype != rows[i].dtype || u->x16 != rows[i].x16)
            fail_msg("%s is of type %u, layout %d", rows[i].name, u->dtype, u->x16);
    }
    qsf_source_close(b);
    qsf_source_close(s);
    qsf_uses_free(&uses);
}

/* Block 0 of Gemma 3n uses matrices of the final section, so its layer must stay uncompressed. */
static void test_partly_compressed(void **state) {
    (void)state;
    const char *path = qsf_test_data("architectures/gemma3n/model.gguf");
    QsfErr e = { 0 };
    QsfUses uses;
    QsfModel m;
    QsfPackOptions o = { .flags = QSFF_LINES, .codec = QSFF_LZ4, .uses = &uses };
    if (path == NULL) return;
    QsfSource *s = open_ok(path);
    qsf_test_expect_ok(qsf_uses_of_source(&uses, s, &ledger, &e), &e);
    assert_true(uses.whole[0] && !uses.whole[1]);
    qsf_test_expect_ok(qsf_pack(s, qsf, &o, NULL, &e), &e);
    qsf_test_expect_ok(qsf_model_open(&m, qsf, NULL, &ledger, &e), &e);
    qsf_model_close(&m);
    uses.whole[0] = false;
    qsf_test_expect_ok(qsf_pack(s, qsf, &o, NULL, &e), &e);
    assert_int_equal(qsf_model_open(&m, qsf, NULL, &ledger, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "of which some are compressed and some are not");
    qsf_source_close(s);
    qsf_uses_free(&uses);
}

/* GGUF has no place for QSF's own types. */
static void test_no_gguf_type(void **state) {
    (void)state;
    QsfErr e = { 0 };
    QsfGgufReport r;
    const QsfGgufOptions as_gguf = { .dry = false };
    QsfPackOptions o = { .flags = QSFF_LINES };
    assert_int_equal(qsf_test_write_tiny_llama(gguf, NULL), 0);
    qsf_test_expect_ok(qsf_pack_type_parse(&o.type, "3bit", &e), &e);
    convert(&o);
    QsfSource *s = open_ok(qsf);
    unlink(back);
    assert_int_equal(qsf_write_gguf(s, back, &as_gguf, &r, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "is of type QSF4, which GGUF does not have");
    assert_int_equal(access(back, F_OK), -1);
    qsf_source_close(s);
}

static int setup(void **state) {
    (void)state;
    qsf_ledger_init(&ledger, 0);
    (void)snprintf(gguf, sizeof gguf, "%s", qsf_test_tmp("named.gguf"));
    (void)snprintf(qsf, sizeof qsf, "%s", qsf_test_tmp("named.qsf"));
    (void)snprintf(back, sizeof back, "%s", qsf_test_tmp("named-back.gguf"));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    unlink(gguf);
    unlink(qsf);
    unlink(back);
    const bool empty = ledger.total == 0;
    qsf_ledger_destroy(&ledger);
    return empty ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_shape),     cmocka_unit_test(test_wrong_names),
        cmocka_unit_test(test_wrong_numbers), cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_uses),          cmocka_unit_test(test_partly_compressed),
        cmocka_unit_test(test_no_gguf_type),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
