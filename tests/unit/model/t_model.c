/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Hyperparameters, roles and shapes, on tiny models and, where present, real ones. */
#include "tests/harness/qsf_test.h"

#include "src/file/dtype.h"
#include "src/model/model.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/gguf_edit.h"

static QsfLedger ledger;

static int open_tiny(QsfModel *m, const QsfTinySpec *spec, const char *const *overrides, QsfErr *e) {
    const char *path = qsf_test_tmp("tiny.gguf");
    assert_int_equal(qsf_test_write_tiny_llama(path, spec), 0);
    qsf_err_clear(e);
    int rc = qsf_model_open(m, path, overrides, &ledger, e);
    unlink(path);
    assert_int_equal(rc, e->code);
    return rc;
}

static void test_tiny(void **state) {
    static const uint32_t types[] = { 0, 1, 2, 8 };
    QsfErr e = { 0 };
    QsfModel m;
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const QsfTinySpec spec = {
            .layers = 3, .wtype = types[i], .tied = i % 2 == 1, .biases = i == 0, .rope_freqs = i == 0
        };
        qsf_test_expect_ok(open_tiny(&m, &spec, NULL, &e), &e);
        assert_string_equal(m.hp.arch->name, "llama");
        assert_string_equal(m.hp.name, "tiny random llama");
        assert_int_equal(m.hp.n_layers, 3);
        assert_int_equal(m.hp.hidden, 64);
        assert_int_equal(m.hp.n_heads, 4);
        assert_int_equal(m.hp.n_kv_heads, 2);
        assert_int_equal(m.hp.head_dim, 16);
        assert_int_equal(m.prog.n_ropes, 1);
        assert_int_equal(m.prog.rope[0].n_rot, 16);
        assert_int_equal(m.hp.ffn, 128);
        assert_int_equal(m.hp.n_vocab, 300);
        assert_int_equal(m.hp.n_ctx_train, 256);
        assert_int_equal(m.prog.tied_head, i % 2 == 1);
        assert_false(m.vocab_only);
        const QsfTensor *q = qsf_source_find_tensor(m.src, "blk.2.attn_q.weight");
        assert_string_equal(q->name, "blk.2.attn_q.weight");
        assert_int_equal(q->dtype, types[i]);
        assert_null(qsf_source_find_tensor(m.src, "blk.3.attn_q.weight"));
        const QsfTensor *head = m.prog.unit[m.prog.n_units - 1].tensor[0];
        assert_string_equal(head->name, i % 2 == 1 ? "token_embd.weight" : "output.weight");
        assert_true((qsf_source_find_tensor(m.src, "blk.1.attn_k.bias") != NULL) == (i == 0));
        assert_true((qsf_source_find_tensor(m.src, "rope_freqs.weight") != NULL) == (i == 0));
        qsf_model_close(&m);
        assert_int_equal(ledger.total, 0);
    }
}

static void test_sums(void **state) {
    QsfErr e = { 0 };
    QsfModel m;
    (void)state;
    qsf_test_expect_ok(open_tiny(&m, NULL, NULL, &e), &e);
    uint64_t layer = 64 * 64 + 2 * 64 * 32 + 64 * 64 + 3 * 64 * 128 + 2 * 64;
    assert_int_equal(qsf_model_n_params(&m), 2 * layer + 2 * 300 * 64 + 64);
    qsf_model_close(&m);
}

typedef struct Wrong {
    const char *override, *part;
} Wrong;

static void test_wrong_hparams(void **state) {
    static const Wrong cases[] = {
        { "general.architecture=str:parrot", "'parrot'" },
        { "general.architecture=str:parrot", "'parrot' (general.architecture) is not supported" },
        { "general.architecture=null", "general.architecture" },
        { "llama.block_count=int:0", "llama.block_count" },
        { "llama.block_count=int:3", "blk.2.attn_norm.weight' is missing" },
        { "llama.block_count=int:1", "belongs to layer 1" },
        { "llama.block_count=int:2000", "1 to 1024" },
        { "llama.block_count=null", "is missing" },
        { "llama.embedding_length=int:32", "token_embd.weight" },
        { "llama.embedding_length=int:2000000", "1 to 1048576" },
        { "llama.attention.head_count=int:0", "head_count" },
        { "llama.attention.head_count_kv=int:3", "does not divide" },
        { "llama.attention.key_length=int:15", "odd" },
        { "llama.attention.value_length=int:32", "attn_v.weight' has the shape" },
        { "llama.attention.key_length=int:32", "attn_q.weight' has the shape" },
        { "llama.feed_forward_length=int:64", "ffn_gate" },
        { "llama.attention.layer_norm_rms_epsilon=null", "is missing" },
        { "llama.attention.layer_norm_rms_epsilon=float:nan", "epsilon" },
        { "llama.attention.layer_norm_rms_epsilon=float:0", "epsilon" },
        { "llama.rope.dimension_count=int:18", "1 to 16" },
        { "llama.rope.dimension_count=int:15", "odd" },
        { "llama.rope.freq_base=float:inf", "freq_base" },
        { "llama.rope.freq_base=float:-1", "freq_base" },
        { "llama.rope.scaling.type=str:wavy", "'wavy'" },
        { "llama.rope.scaling.factor=float:-2", "scaling.factor" },
        { "llama.expert_count=int:8", "expert_used_count' is missing" },
        { "llama.attention.causal=bool:false", "causal" },
        { "llama.context_length=str:long", "of type string" },
        { "bad", "--override-kv" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const overrides[] = { cases[i].override, NULL };
        QsfErr e = { 0 };
        QsfModel m;
        if (open_tiny(&m, NULL, overrides, &e) == QSF_OK) fail_msg("%s was accepted", cases[i].override);
        qsf_test_expect_err(&e, i + 1 == sizeof cases / sizeof *cases ? QSF_E_USAGE : QSF_E_MODEL,
                            cases[i].part);
        assert_int_equal(ledger.total, 0);
    }
}

static float rope_scale_with(const char *a, const char *b) {
    const char *const overrides[] = { a, b, NULL };
    QsfErr e = { 0 };
    QsfModel m;
    qsf_test_expect_ok(open_tiny(&m, NULL, overrides, &e), &e);
    float v = (float)(1 / m.prog.rope[0].freq[0]);
    qsf_model_close(&m);
    return v;
}

static void expect_near(float got, float want) {
    if (got < want * 0.999f || got > want * 1.001f) fail_msg("%g, expected %g", (double)got, (double)want);
}

static void test_rope_scale(void **state) {
    (void)state;
    expect_near(rope_scale_with(NULL, NULL), 1.0f);
    expect_near(rope_scale_with("llama.rope.scaling.type=str:linear", "llama.rope.scaling.factor=float:4"),
                4.0f);
    expect_near(rope_scale_with("llama.rope.scaling.type=str:none", "llama.rope.scaling.factor=float:4"),
                1.0f);
    expect_near(rope_scale_with("llama.rope.scale_linear=float:2", NULL), 2.0f);
    expect_near(rope_scale_with("llama.rope.scaling.factor=float:0", NULL), 1.0f);
}

/* The smallest model that opens, with one entry replaced or added by the caller. */
static void add_plain(QsfGgufBuild *b, const char *skip) {
    static const float zeros[64 * 64];
    static const struct {
        const char *name;
        uint32_t n_dims;
        uint64_t ne[2];
    } rows[] = { { "token_embd.weight", 2, { 8, 4 } },      { "output_norm.weight", 1, { 8, 1 } },
                 { "blk.0.attn_norm.weight", 1, { 8, 1 } }, { "blk.0.ffn_norm.weight", 1, { 8, 1 } },
                 { "blk.0.attn_q.weight", 2, { 8, 8 } },    { "blk.0.attn_k.weight", 2, { 8, 8 } },
                 { "blk.0.attn_v.weight", 2, { 8, 8 } },    { "blk.0.attn_output.weight", 2, { 8, 8 } },
                 { "blk.0.ffn_gate.weight", 2, { 8, 16 } }, { "blk.0.ffn_up.weight", 2, { 8, 16 } },
                 { "blk.0.ffn_down.weight", 2, { 16, 8 } } };
    qsf_gb_str(b, "general.architecture", "llama");
    qsf_gb_u32(b, "llama.block_count", 1);
    qsf_gb_u32(b, "llama.embedding_length", 8);
    qsf_gb_u32(b, "llama.context_length", 64);
    qsf_gb_u32(b, "llama.vocab_size", 4);
    qsf_gb_f32(b, "llama.attention.layer_norm_rms_epsilon", 1e-6f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, skip) != 0)
            qsf_gb_tensor(b, rows[i].name, 0, rows[i].n_dims, rows[i].ne, zeros,
                          (size_t)(rows[i].ne[0] * rows[i].ne[1]) * sizeof *zeros);
}

static void add_counts(QsfGgufBuild *b) {
    qsf_gb_u32(b, "llama.attention.head_count", 2);
    qsf_gb_u32(b, "llama.feed_forward_length", 16);
}

static int open_build(QsfGgufBuild *b, QsfModel *m, QsfErr *e) {
    const char *path = qsf_test_tmp("plain.gguf");
    assert_int_equal(qsf_gb_write(b, path), 0);
    qsf_gb_free(b);
    qsf_err_clear(e);
    int rc = qsf_model_open(m, path, NULL, &ledger, e);
    unlink(path);
    return rc;
}

static void expect_tensor_error(const char *name, uint32_t dtype, uint64_t cols, uint64_t rows,
                                const char *part) {
    static const float zeros[256];
    const uint64_t ne[2] = { cols, rows };
    uint64_t bytes;
    QsfGgufBuild b = { 0 };
    QsfErr e = { 0 };
    QsfModel m;
    add_plain(&b, name);
    add_counts(&b);
    assert_true(qsf_dtype_row_bytes(qsf_dtype(dtype), cols, &bytes));
    qsf_gb_tensor(&b, name, dtype, 2, ne, zeros, (size_t)(bytes * rows));
    if (open_build(&b, &m, &e) == QSF_OK) fail_msg("%s was accepted", name);
    qsf_test_expect_err(&e, QSF_E_MODEL, part);
    assert_non_null(strstr(e.msg, name));
    assert_int_equal(ledger.total, 0);
}

/* Values that begin with a known word, followed by a NUL. */
static void test_nul(void **state) {
    static const char *const edits[] = { "str=general.architecture=llama\\0x",
                                         "str=llama.rope.scaling.type=none\\0x" };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const char *good = qsf_test_tmp("good.gguf"), *bad = qsf_test_tmp("bad.gguf");
        QsfErr e = { 0 };
        QsfModel m;
        assert_int_equal(qsf_test_write_tiny_llama(good, NULL), 0);
        assert_int_equal(qsf_test_edit_gguf(good, bad, (const char *[]){ edits[i], NULL }), 0);
        if (qsf_model_open(&m, bad, NULL, &ledger, &e) == QSF_OK) fail_msg("%s was accepted", edits[i]);
        qsf_test_expect_err(&e, QSF_E_MODEL, "is a string that contains a NUL");
        qsf_test_expect_err(&e, QSF_E_MODEL, bad);
        unlink(good);
        unlink(bad);
    }
}

static void test_tensors(void **state) {
    QsfGgufBuild b = { 0 };
    QsfErr e = { 0 };
    QsfModel m;
    (void)state;
    add_plain(&b, "");
    add_counts(&b);
    qsf_gb_tensor(&b, "blk.0.attn_rot_embd", 0, 1, (const uint64_t[]){ 2 }, "12345678", 8);
    qsf_test_expect_ok(open_build(&b, &m, &e), &e);
    assert_int_equal(m.hp.n_kv_heads, 2);
    assert_int_equal(m.hp.head_dim, 4);
    assert_true(m.prog.tied_head);
    qsf_model_close(&m);
    add_plain(&b, "blk.0.ffn_up.weight");
    add_counts(&b);
    assert_int_equal(open_build(&b, &m, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "'blk.0.ffn_up.weight' is missing");
    add_plain(&b, "output_norm.weight");
    add_counts(&b);
    assert_int_equal(open_build(&b, &m, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "'output_norm.weight' is missing");
    expect_tensor_error("blk.0.attn_q.weight", 0, 8, 4, "shape");
    expect_tensor_error("blk.0.attn_norm.weight", 26, 8, 1, "expected F32, F16 or BF16");
    expect_tensor_error("blk.0.attn_q.weight", 24, 8, 8, "I8, which is not supported");
    expect_tensor_error("blk.0.attn_q_norm.weight", 0, 8, 1, "not supported in a llama model");
    expect_tensor_error("blk.0.ffn_gate_inp.weight", 0, 8, 1, "not supported in a llama model");
    expect_tensor_error("blk.0.attn_norm.bias", 0, 8, 1, "not supported in a llama model");
    expect_tensor_error("token_types.weight", 0, 8, 1, "not supported in a llama model");
    expect_tensor_error("rope_freqs.weight", 1, 2, 1, "expected F32");
    expect_tensor_error("rope_freqs.weight", 0, 2, 1, "not positive");
    expect_tensor_error("blk.1.attn_q.weight", 0, 8, 8, "belongs to layer 1");
}

static void test_per_layer_arrays(void **state) {
    static const int32_t same[] = { 2 }, two[] = { 2, 2 }, ffn[] = { 16 };
    QsfGgufBuild b = { 0 };
    QsfErr e = { 0 };
    QsfModel m;
    (void)state;
    add_plain(&b, "");
    qsf_gb_u32(&b, "llama.attention.head_count", 2);
    qsf_gb_array(&b, "llama.attention.head_count_kv", QSF_META_I32, 1, same, sizeof same);
    qsf_gb_array(&b, "llama.feed_forward_length", QSF_META_I32, 1, ffn, sizeof ffn);
    qsf_test_expect_ok(open_build(&b, &m, &e), &e);
    assert_int_equal(m.hp.ffn, 16);
    assert_int_equal(m.hp.n_kv_heads, 2);
    qsf_model_close(&m);
    add_plain(&b, "");
    add_counts(&b);
    qsf_gb_array(&b, "llama.attention.head_count_kv", QSF_META_I32, 2, two, sizeof two);
    assert_int_equal(open_build(&b, &m, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "one element per layer");
}

static void test_vocab_only(void **state) {
    QsfGgufBuild b = { 0 };
    QsfErr e = { 0 };
    QsfModel m;
    (void)state;
    qsf_gb_str(&b, "general.architecture", "strange");
    qsf_gb_str(&b, "general.name", "na\x1bme");
    qsf_gb_tiny_vocab(&b, 260);
    qsf_test_expect_ok(open_build(&b, &m, &e), &e);
    assert_true(m.vocab_only);
    assert_null(m.hp.arch);
    assert_string_equal(m.hp.name, "na?me");
    assert_null(qsf_source_find_tensor(m.src, "token_embd.weight"));
    qsf_model_close(&m);
    assert_int_equal(ledger.total, 0);
}

static void test_unlike_layers(void **state) {
    static const int32_t kv[] = { 2, 1 };
    const char *path = qsf_test_tmp("unlike.gguf");
    QsfGgufBuild b = { 0 };
    QsfErr e = { 0 };
    QsfModel m;
    (void)state;
    add_plain(&b, "");
    qsf_gb_u32(&b, "llama.feed_forward_length", 16);
    qsf_gb_u32(&b, "llama.attention.head_count", 2);
    qsf_gb_array(&b, "llama.attention.head_count_kv", QSF_META_I32, 2, kv, sizeof kv);
    assert_int_equal(qsf_gb_write(&b, path), 0);
    qsf_gb_free(&b);
    const char *const overrides[] = { "llama.block_count=int:2", NULL };
    assert_int_equal(qsf_model_open(&m, path, overrides, &ledger, &e), QSF_E_MODEL);
    qsf_test_expect_err(&e, QSF_E_MODEL, "blk.1.attn_norm.weight' is missing");
    unlink(path);
}

static void test_real(void **state) {
    const char *path = qsf_test_data("models/stories260K.gguf");
    QsfErr e = { 0 };
    QsfModel m;
    (void)state;
    if (path == NULL) skip();
    qsf_test_expect_ok(qsf_model_open(&m, path, NULL, &ledger, &e), &e);
    assert_int_equal(m.hp.n_vocab, 512);
    assert_int_equal(m.hp.n_layers, 5);
    assert_int_equal(m.hp.hidden, 64);
    assert_true(qsf_model_n_params(&m) > 250000 && qsf_model_n_params(&m) < 350000);
    qsf_model_close(&m);
}

/* Architectures and types that this version supports. */
static void test_parity_cases(void **state) {
    static const char *const names[] = { "llama",        "llama3",      "llama_linear", "quant_f16",
                                         "quant_bf16",   "quant_q8_0",  "quant_q4_0",   "quant_q4_1",
                                         "quant_q5_0",   "quant_q5_1",  "quant_q4_k_m", "quant_q5_k_m",
                                         "quant_q6_k",   "quant_q2_k",  "quant_q3_k_m", "quant_iq4_nl",
                                         "quant_iq4_xs", "quant_tq1_0", "quant_tq2_0" };
    int opened = 0;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char relative[128];
        QsfErr e = { 0 };
        QsfModel m;
        snprintf(relative, sizeof relative, "parity/%s/model.gguf", names[i]);
        const char *path = qsf_test_data(relative);
        if (path == NULL) continue;
        qsf_test_expect_ok(qsf_model_open(&m, path, NULL, &ledger, &e), &e);
        assert_true((qsf_source_find_tensor(m.src, "rope_freqs.weight") != NULL) ==
                    (strcmp(names[i], "llama3") == 0));
        if (strcmp(names[i], "llama_linear") == 0) expect_near((float)(1 / m.prog.rope[0].freq[0]), 4.0f);
        qsf_model_close(&m);
        opened++;
    }
    assert_int_equal(ledger.total, 0);
    if (opened == 0) skip();
}

static int setup(void **state) {
    (void)state;
    qsf_ledger_init(&ledger, 0);
    return 0;
}

/* ---- what was defaulted ---- */

static void expect_part(const char *text, const char *part) {
    if (strstr(text, part) == NULL) fail_msg("'%s' is not in: %s", part, text);
}

static void test_reads(void **state) {
    const QsfTinySpec spec = { .biases = true };
    const char *path = qsf_test_tmp("reads.gguf"), *copy = qsf_test_tmp("reads-edited.gguf");
    const char *const edits[] = {
        "drop-tensor=blk.1.attn_v.bias", "u32=llama.pretend.level=3", "u32=llama.vision.size=3",
        "u32=llama.vocab_size=300",      "u32=llamas.other=3",        NULL
    };
    QsfStrbuf text = QSF_STRBUF_INIT, json = QSF_STRBUF_INIT, unknown = QSF_STRBUF_INIT;
    QsfModel m;
    QsfErr err = { 0 };
    (void)state;
    assert_int_equal(qsf_test_write_tiny_llama(path, &spec), 0);
    assert_int_equal(qsf_test_edit_gguf(path, copy, edits), 0);
    qsf_test_expect_ok(qsf_model_open(&m, copy, NULL, &ledger, &err), &err);
    qsf_reads_put_text(&text, &m.reads, m.hp.n_named);
    expect_part(qsf_strbuf_str(&text), "  llama.rope.scaling.type                              linear\n");
    expect_part(qsf_strbuf_str(&text), "  llama.rope.scaling.factor                            1\n");
    expect_part(qsf_strbuf_str(&text), "  attn_v.bias                                          block 1\n");
    expect_part(qsf_strbuf_str(&text), "  ffn_up.bias                                          all blocks\n");
    expect_part(qsf_strbuf_str(&text), "  rope_freqs.weight\n");
    assert_null(strstr(qsf_strbuf_str(&text), "attn_q.bias"));
    assert_null(strstr(qsf_strbuf_str(&text), "embedding_length"));
    qsf_reads_put_json(&json, &m.reads);
    expect_part(qsf_strbuf_str(&json), "\"llama.rope.scaling.type\": \"linear\"");
    expect_part(qsf_strbuf_str(&json), "{\"name\": \"attn_v.bias\", \"blocks\": [1]}");
    expect_part(qsf_strbuf_str(&json), "{\"name\": \"rope_freqs.weight\", \"blocks\": null}");
    assert_int_equal(qsf_reads_put_unknown(&unknown, &m.reads, m.src, "llama"), 1);
    assert_string_equal(qsf_strbuf_str(&unknown), "llama.pretend.level");
    qsf_strbuf_free(&text);
    qsf_strbuf_free(&json);
    qsf_strbuf_free(&unknown);
    qsf_model_close(&m);
    assert_int_equal(ledger.total, 0);
    (void)remove(path);
    (void)remove(copy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),         cmocka_unit_test(test_tiny),
        cmocka_unit_test(test_sums),          cmocka_unit_test(test_wrong_hparams),
        cmocka_unit_test(test_rope_scale),    cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_nul),           cmocka_unit_test(test_per_layer_arrays),
        cmocka_unit_test(test_unlike_layers), cmocka_unit_test(test_vocab_only),
        cmocka_unit_test(test_real),          cmocka_unit_test(test_parity_cases)
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
