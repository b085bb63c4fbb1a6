/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Conversion of a model's tensors: fused ones are split, formats must fit, values that cannot be quantized,
 * the fallback. (tests/system/convert.sh has whole models; t_quant the formats.) */
#include "tests/harness/source_rig.h"

#include <math.h>

#include "src/convert/pack/pack.h"
#include "src/file/qsf/names.h"
#include "src/file/rows.h"
#include "src/model/model.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/st_build.h"

enum { HIDDEN = 64, HEADS = 4, KV = 2, HEAD_DIM = 16, FFN = 96, VOCAB = 260, LAYERS = 2 };

static char gguf[256], qsf[256];

static float value_at(uint64_t i) { return (float)((int)(i * 7919 % 1999) - 999) / 1000.0f; }

/* Values that identify their place. at (or none, UINT64_MAX): this element is x instead. */
static void add_tensor(QsfGgufBuild *b, const char *name, uint64_t rows, uint64_t cols, uint64_t at,
                       float x) {
    uint64_t ne[2] = { cols, rows }, n = rows * cols;
    float *v = malloc(n * sizeof *v);
    assert_non_null(v);
    for (uint64_t i = 0; i < n; i++) v[i] = value_at(i + cols);
    if (at < n) v[at] = x;
    qsf_gb_tensor(b, name, 0, rows > 1 ? 2 : 1, ne, v, n * sizeof *v);
    free(v);
}

static void add_plain(QsfGgufBuild *b, const char *name, uint64_t rows, uint64_t cols) {
    add_tensor(b, name, rows, cols, UINT64_MAX, 0);
}

static const char *in_layer(char *buf, size_t cap, unsigned layer, const char *rest) {
    (void)snprintf(buf, cap, "blk.%u.%s", layer, rest);
    return buf;
}

static void put_numbers(QsfGgufBuild *b, const char *arch, uint32_t ffn) {
    const struct {
        const char *key;
        uint32_t v;
    } numbers[] = {
        { "block_count", LAYERS },
        { "embedding_length", HIDDEN },
        { "feed_forward_length", ffn },
        { "attention.head_count", HEADS },
        { "attention.head_count_kv", KV },
        { "context_length", 64 },
        { "attention.key_length", HEAD_DIM },
        { "attention.value_length", HEAD_DIM },
    };
    char key[64];
    qsf_gb_str(b, "general.architecture", arch);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        (void)snprintf(key, sizeof key, "%s.%s", arch, numbers[i].key);
        qsf_gb_u32(b, key, numbers[i].v);
    }
    (void)snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", arch);
    qsf_gb_f32(b, key, 1e-5f);
    qsf_gb_tiny_vocab(b, VOCAB);
}

/* A model like Phi-3: Q, K and V in one matrix, gate and up in another; with biases, which Phi-3 does not
 * have. */
static void write_fused(void) {
    QsfGgufBuild b = { 0 };
    char name[64];
    const uint64_t qkv = (HEADS + 2 * KV) * HEAD_DIM;
    put_numbers(&b, "phi3", FFN);
    add_plain(&b, "token_embd.weight", VOCAB, HIDDEN);
    for (unsigned l = 0; l < LAYERS; l++) {
        add_plain(&b, in_layer(name, sizeof name, l, "attn_norm.weight"), 1, HIDDEN);
        add_plain(&b, in_layer(name, sizeof name, l, "attn_qkv.weight"), qkv, HIDDEN);
        add_plain(&b, in_layer(name, sizeof name, l, "attn_qkv.bias"), 1, qkv);
        add_plain(&b, in_layer(name, sizeof name, l, "attn_output.weight"), HIDDEN, HIDDEN);
        add_plain(&b, in_layer(name, sizeof name, l, "ffn_norm.weight"), 1, HIDDEN);
        add_plain(&b, in_layer(name, sizeof name, l, "ffn_gate.bias"), 1, FFN);
        add_plain(&b, in_layer(name, sizeof name, l, "ffn_up.weight"), 2 * FFN, HIDDEN);
        add_plain(&b, in_layer(name, sizeof name, l, "ffn_down.weight"), HIDDEN, FFN);
    }
    add_plain(&b, "output_norm.weight", 1, HIDDEN);
    add_plain(&b, "output.weight", VOCAB, HIDDEN);
    assert_int_equal(qsf_gb_write(&b, gguf), 0);
    qsf_gb_free(&b);
}

/* A llama in which V of the second layer has x somewhere. */
static void write_llama(uint32_t ffn, float x) {
    QsfGgufBuild b = { 0 };
    char name[64];
    put_numbers(&b, "llama", ffn);
    add_plain(&b, "token_embd.weight", VOCAB, HIDDEN);
    for (unsigned l = 0; l < LAYERS; l++) {
        add_plain(&b, in_layer(name, sizeof name, l, "attn_norm.weight"), 1, HIDDEN);
        add_plain(&b, in_layer(name, sizeof name, l, "attn_q.weight"), HIDDEN, HIDDEN);
        add_plain(&b, in_layer(name, sizeof name, l, "attn_k.weight"), KV * HEAD_DIM, HIDDEN);
        add_tensor(&b, in_layer(name, sizeof name, l, "attn_v.weight"), KV * HEAD_DIM, HIDDEN,
                   l == 1 ? 7 * HIDDEN + 5 : UINT64_MAX, x);
        add_plain(&b, in_layer(name, sizeof name, l, "attn_output.weight"), HIDDEN, HIDDEN);
        add_plain(&b, in_layer(name, sizeof name, l, "ffn_norm.weight"), 1, HIDDEN);
        add_plain(&b, in_layer(name, sizeof name, l, "ffn_gate.weight"), ffn, HIDDEN);
        add_plain(&b, in_layer(name, sizeof name, l, "ffn_up.weight"), ffn, HIDDEN);
        add_plain(&b, in_layer(name, sizeof name, l, "ffn_down.weight"), HIDDEN, ffn);
    }
    add_plain(&b, "output_norm.weight", 1, HIDDEN);
    assert_int_equal(qsf_gb_write(&b, gguf), 0);
    qsf_gb_free(&b);
}

static int pack(const char *type, QsfPackOptions *o, QsfPackReport *r, QsfErr *e) {
    QsfSource *s = open_ok(gguf);
    qsf_test_expect_ok(qsf_pack_type_parse(&o->type, type, e), e);
    int rc = qsf_pack(s, qsf, o, r, e);
    qsf_source_close(s);
    return rc;
}

/* Rows [first, ...) of `from` are those of the tensor `name` of the file. */
static void same_rows(const QsfSource *a, const char *from, uint64_t first, const QsfSource *b,
                      const char *name) {
    QsfErr e = { 0 };
    const QsfTensor *t = qsf_source_find_tensor(a, from), *u = qsf_source_find_tensor(b, name);
    assert_non_null(t);
    assert_non_null(u);
    const size_t len = (size_t)u->bytes, at = (size_t)(first * (t->ne[1] > 1 ? t->ne[0] : 1) * 4);
    uint8_t *want = malloc(len), *have = malloc(len);
    assert_true(want != NULL && have != NULL);
    qsf_test_expect_ok(qsf_source_read_bytes(a, t, at, want, len, &e), &e);
    qsf_test_expect_ok(qsf_source_read_bytes(b, u, 0, have, len, &e), &e);
    assert_memory_equal(want, have, len);
    free(want);
    free(have);
}

static void test_fused(void **state) {
    (void)state;
    static const struct {
        const char *from, *name;
        uint64_t first, rows, cols;
    } parts[] = {
        { "attn_qkv.weight", "attn_q.weight", 0, HEADS * HEAD_DIM, HIDDEN },
        { "attn_qkv.weight", "attn_k.weight", HEADS * HEAD_DIM, KV * HEAD_DIM, HIDDEN },
        { "attn_qkv.weight", "attn_v.weight", (HEADS + KV) * HEAD_DIM, KV * HEAD_DIM, HIDDEN },
        { "attn_qkv.bias", "attn_q.bias", 0, 1, HEADS * HEAD_DIM },
        { "attn_qkv.bias", "attn_k.bias", HEADS * HEAD_DIM, 1, KV * HEAD_DIM },
        { "attn_qkv.bias", "attn_v.bias", (HEADS + KV) * HEAD_DIM, 1, KV * HEAD_DIM },
        { "ffn_gate.bias", "ffn_gate.bias", 0, 1, FFN },
        { "ffn_up.weight", "ffn_gate.weight", 0, FFN, HIDDEN },
        { "ffn_up.weight", "ffn_up.weight", FFN, FFN, HIDDEN },
        { "ffn_down.weight", "ffn_down.weight", 0, HIDDEN, FFN },
    };
    QsfErr e = { 0 };
    QsfPackOptions o = { .flags = QSFF_LINES };
    char from[64], name[64];
    write_fused();
    qsf_test_expect_ok(pack("keep", &o, NULL, &e), &e);
    QsfSource *a = open_ok(gguf), *b = open_ok(qsf);
    for (unsigned l = 0; l < LAYERS; l++)
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            in_layer(from, sizeof from, l, parts[i].from);
            in_layer(name, sizeof name, l, parts[i].name);
            same_rows(a, from, parts[i].first, b, name);
            const QsfTensor *t = qsf_source_find_tensor(b, name);
            assert_true(t->ne[0] == parts[i].cols && t->ne[1] == parts[i].rows);
        }
    qsf_source_close(a);
    qsf_source_close(b);
}

/* A part of a fused tensor is quantized to the same bytes as the same rows in a separate tensor. */
static void test_fused_packed(void **state) {
    (void)state;
    static const char *const names[] = { "attn_k.weight", "attn_v.weight", "ffn_gate.weight",
                                         "ffn_up.weight" };
    QsfErr e = { 0 };
    QsfPackOptions o = { .flags = QSFF_LINES };
    char one[300], name[64];
    write_fused();
    qsf_test_expect_ok(pack("keep", &o, NULL, &e), &e); /* floats, split */
    (void)snprintf(one, sizeof one, "%s.one", qsf);
    QsfSource *apart = open_ok(qsf);
    qsf_test_expect_ok(qsf_pack_type_parse(&o.type, "3bit", &e), &e);
    qsf_test_expect_ok(qsf_pack(apart, one, &o, NULL, &e), &e);
    qsf_source_close(apart);
    qsf_test_expect_ok(pack("3bit", &o, NULL, &e), &e);
    QsfSource *a = open_ok(one), *b = open_ok(qsf);
    for (unsigned l = 0; l < LAYERS; l++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            in_layer(name, sizeof name, l, names[i]);
            same_rows(a, name, 0, b, name);
        }
    qsf_source_close(a);
    qsf_source_close(b);
    unlink(one);
}

/* All rows of t as floats, in GGUF's order; the caller frees them. */
static float *floats_of(const QsfSource *s, const QsfTensor *t) {
    QsfErr e = { 0 };
    float *x = malloc((size_t)(qsf_tensor_n_rows(t) * t->ne[0]) * sizeof *x);
    assert_non_null(x);
    qsf_test_expect_ok(qsf_source_read_rows(s, t, 0, qsf_tensor_n_rows(t), x, &e), &e);
    return x;
}

/* Every tensor of a directory, whose Q and K rows are in another order, and of the file made from it. */
static void same_floats(const QsfSource *dir, const QsfSource *file) {
    for (uint64_t i = 0; i < qsf_source_n_tensors(dir); i++) {
        const QsfTensor *t = qsf_source_tensor(dir, i), *u = qsf_source_find_tensor(file, t->name);
        if (u == NULL) fail_msg("no tensor %s", t->name);
        assert_true(t->ne[0] == u->ne[0] && t->ne[1] == u->ne[1]);
        float *want = floats_of(dir, t), *have = floats_of(file, u);
        assert_memory_equal(want, have, (size_t)(qsf_tensor_n_rows(t) * t->ne[0]) * sizeof *want);
        free(want);
        free(have);
    }
}

static void test_directory(void **state) {
    (void)state;
    static const QsfHfSpec specs[] = {
        { .hidden = 64, .ffn = 128, .dtype = "BF16", .shards = true },
        { .hidden = 64,
          .ffn = 128,
          .dtype = "F16",
          .tied = true,
          .last = ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,"
                  "\"high_freq_factor\":4,\"original_max_position_embeddings\":256}" },
    };
    char dir[300], one[300];
    QsfErr e = { 0 };
    for (size_t k = 0; k < sizeof specs / sizeof *specs; k++) {
        QsfPackOptions o = { .flags = QSFF_PAGES | QSFF_LINES };
        (void)snprintf(dir, sizeof dir, "%s.XXXXXX", qsf);
        assert_non_null(mkdtemp(dir));
        assert_int_equal(qsf_test_write_hf_dir(dir, &specs[k]), 0);
        QsfSource *s = open_ok(dir);
        qsf_test_expect_ok(qsf_pack(s, qsf, &o, NULL, &e), &e);
        QsfSource *kept = open_ok(qsf);
        same_floats(s, kept);
        /* Quantized directly, or after a lossless conversion: the same file. */
        (void)snprintf(one, sizeof one, "%s.one", qsf);
        qsf_test_expect_ok(qsf_pack_type_parse(&o.type, "4bit", &e), &e);
        qsf_test_expect_ok(qsf_pack(kept, one, &o, NULL, &e), &e);
        qsf_source_close(kept);
        qsf_test_expect_ok(qsf_pack(s, qsf, &o, NULL, &e), &e);
        QsfSource *a = open_ok(one), *b = open_ok(qsf);
        for (uint64_t i = 0; i < qsf_source_n_tensors(a); i++)
            same_rows(a, qsf_source_tensor(a, i)->name, 0, b, qsf_source_tensor(a, i)->name);
        qsf_source_close(a);
        qsf_source_close(b);
        qsf_source_close(s);
        qsf_test_remove_hf_dir(dir);
        unlink(one);
    }
}

static const QsfItem *item_of(const QsfPackReport *r, const char *name) {
    char buf[QSF_ITEM_NAME];
    for (uint32_t i = 0; i < r->items.n; i++)
        if (!strcmp(qsf_item_name(&r->items.item[i], buf), name)) return &r->items.item[i];
    fail_msg("no item %s", name);
    return NULL;
}

static void expect_item(const QsfPackReport *r, const char *name, uint8_t code, QsfKeepReason why) {
    const QsfItem *i = item_of(r, name);
    if (i->code != code || i->why != why)
        fail_msg("%s: code %u, because %s", name, i->code, qsf_keep_reason_text(i->why));
}

static void test_choice(void **state) {
    (void)state;
    QsfErr e = { 0 };
    QsfPackOptions o = { .flags = QSFF_LINES, .threads = 2 };
    QsfPackReport r;
    write_llama(FFN, 0.5f); /* rows of 96: three blocks of 32, none of 64 */
    qsf_test_expect_ok(pack("2bit-asym", &o, &r, &e), &e);
    expect_item(&r, "token_embd.weight", QSFF_4BIT, QSF_WHY_ROLE);
    expect_item(&r, "blk.0.attn_q.weight", QSFF_2BIT, QSF_WHY_NONE);
    expect_item(&r, "blk.1.ffn_down.weight", QSFF_8BIT, QSF_WHY_COLUMNS);
    expect_item(&r, "blk.1.ffn_norm.weight", QSFF_F32, QSF_WHY_VECTOR);
    qsf_pack_report_free(&r);
    qsf_test_expect_ok(pack("q4_k", &o, &r, &e), &e); /* blocks of 256 do not fit */
    expect_item(&r, "blk.0.attn_q.weight", QSFF_4BIT, QSF_WHY_COLUMNS);
    expect_item(&r, "blk.0.ffn_down.weight", QSFF_8BIT, QSF_WHY_COLUMNS);
    qsf_pack_report_free(&r);
    write_llama(100, 0.5f); /* rows of 100: no block fits */
    qsf_test_expect_ok(pack("8bit", &o, &r, &e), &e);
    expect_item(&r, "blk.0.ffn_down.weight", QSFF_F16, QSF_WHY_COLUMNS);
    qsf_pack_report_free(&r);
    qsf_test_expect_ok(pack("mixed", &o, &r, &e), &e); /* evenly spread values: 3 bits are 18 dB, 2 bits 12 */
    expect_item(&r, "blk.1.attn_v.weight", QSFF_4BIT, QSF_WHY_ROLE);
    qsf_pack_report_free(&r);
    assert_int_equal(qsf_pack_type_parse(&o.type, "q5_9", &e), QSF_E_USAGE);
    qsf_test_expect_err(&e, QSF_E_USAGE, "keep, mixed, 2bit");
}

/* The matrices of both files decode to the same values. */
static void same_values(const char *type, uint32_t block, const char *name, const QsfSource *a,
                        const QsfSource *b) {
    QsfErr e = { 0 };
    const QsfTensor *t = qsf_source_find_tensor(a, name), *u = qsf_source_find_tensor(b, name);
    const QsfQuant large = { .format = qsf_quant_format_named(type), .block = block },
                   small = { .format = large.format };
    assert_true(t != NULL && u != NULL);
    const size_t cols = (size_t)t->ne[0], rows = (size_t)t->ne[1], n = rows * cols;
    uint8_t *raw = malloc((size_t)(t->bytes + u->bytes));
    float *want = malloc(n * sizeof *want), *have = malloc(n * sizeof *have);
    assert_true(raw != NULL && want != NULL && have != NULL);
    qsf_test_expect_ok(qsf_source_read_bytes(a, t, 0, raw, (size_t)t->bytes, &e), &e);
    qsf_test_expect_ok(qsf_source_read_bytes(b, u, 0, raw + t->bytes, (size_t)u->bytes, &e), &e);
    qsf_test_expect_ok(qsf_quant_decode(&large, raw, rows, cols, want, &e), &e);
    qsf_test_expect_ok(qsf_quant_decode(&small, raw + t->bytes, rows, cols, have, &e), &e);
    assert_memory_equal(want, have, n * sizeof *want);
    free(raw);
    free(want);
    free(have);
}

/* Blocks of 128 and 256 are refused if the model is computed with them, and become blocks of 64 with the same
 * values. */
static void test_larger_blocks(void **state) {
    (void)state;
    static const char *const types[] = { "2bit", "2bit-asym", "3bit", "4bit", "ternary" };
    char again[300];
    snprintf(again, sizeof again, "%s.64", qsf);
    const QsfTinySpec spec = { .hidden = 256, .ffn = 512 };
    assert_int_equal(qsf_test_write_tiny_llama(gguf, &spec), 0);
    for (size_t i = 0; i < 2 * sizeof types / sizeof *types; i++) {
        QsfErr e = { 0 };
        QsfModel m;
        const char *type = types[i / 2];
        QsfPackOptions o = { .flags = QSFF_LINES, .block = i % 2 ? 256 : 128, .threads = 1 },
                       keep = { .flags = QSFF_LINES };
        qsf_test_expect_ok(pack(type, &o, NULL, &e), &e);
        QsfSource *a = open_ok(qsf);
        assert_int_equal(qsf_model_open(&m, qsf, NULL, &ledger, &e), QSF_E_MODEL);
        qsf_test_expect_err(&e, QSF_E_MODEL,
                            "only blocks of 64 can be run; qsf-convert converts them losslessly");
        qsf_err_clear(&e);
        qsf_test_expect_ok(qsf_pack(a, again, &keep, NULL, &e), &e);
        QsfSource *b = open_ok(again);
        same_values(type, o.block, "blk.1.ffn_down.weight", a, b);
        same_values(type, o.block, "blk.0.attn_q.weight", a, b);
        qsf_source_close(b);
        qsf_test_expect_ok(qsf_model_open(&m, again, NULL, &ledger, &e), &e);
        qsf_model_close(&m);
        qsf_test_expect_ok(qsf_pack_type_parse(&keep.type, "8bit", &e), &e); /* and can be requantized */
        qsf_test_expect_ok(qsf_pack(a, again, &keep, NULL, &e), &e);
        qsf_source_close(a);
    }
    unlink(again);
}

/* Tensors that already have as few bits are not requantized, and this is reported. */
static void test_small_already(void **state) {
    (void)state;
    QsfErr e = { 0 };
    QsfPackOptions o = { .flags = QSFF_LINES };
    QsfPackReport r;
    const QsfTinySpec spec = { .wtype = 2, .hidden = 64, .ffn = 128 };
    assert_int_equal(qsf_test_write_tiny_llama(gguf, &spec), 0);
    qsf_test_expect_ok(pack("8bit", &o, &r, &e), &e);
    expect_item(&r, "blk.0.attn_q.weight", QSFF_GGML + 2, QSF_WHY_SMALLER);
    qsf_pack_report_free(&r);
    qsf_test_expect_ok(pack("3bit", &o, &r, &e), &e);
    expect_item(&r, "blk.0.attn_q.weight", QSFF_3BIT, QSF_WHY_NONE);
    qsf_pack_report_free(&r);
}

static void test_bad_values(void **state) {
    (void)state;
    static const float bad[] = { NAN, INFINITY, 1e30f };
    QsfErr e = { 0 };
    QsfPackOptions o = { .flags = QSFF_LINES, .threads = 3 };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_llama(FFN, bad[i]);
        unlink(qsf);
        assert_int_equal(pack("8bit", &o, NULL, &e), QSF_E_MODEL);
        qsf_test_expect_err(&e, QSF_E_MODEL, "tensor 'blk.1.attn_v.weight': ");
        qsf_test_expect_err(&e, QSF_E_MODEL, "row 7");
        assert_int_equal(access(qsf, F_OK), -1);
        qsf_err_clear(&e);
        qsf_test_expect_ok(pack("keep", &o, NULL, &e), &e); /* not tested here */
    }
}

static void test_interrupted(void **state) {
    (void)state;
    QsfErr e = { 0 };
    atomic_int cancel = 1;
    QsfPackOptions o = { .flags = QSFF_LINES, .cancel = &cancel };
    static const char *const types[] = { "keep", "4bit", "mixed" };
    write_llama(FFN, 0.5f);
    unlink(qsf);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        assert_int_equal(pack(types[i], &o, NULL, &e), QSF_E_INTERRUPTED);
        assert_int_equal(access(qsf, F_OK), -1);
        qsf_err_clear(&e);
    }
}

/* I2_S stores one scale after all rows: when requantized, it must be included in the values. */
static void test_scale_of_all(void **state) {
    (void)state;
    const uint64_t ne[2] = { 128, 2 };
    uint8_t data[2 * 32 + 32] = { 0 };
    float scale = 0.25f, out[128];
    uint8_t raw[64];
    QsfErr e = { 0 };
    QsfGgufBuild b = { 0 };
    QsfWeights w;
    qk_table kernels;
    for (int i = 0; i < 64; i++)
        data[i] = (uint8_t)(i < 32 ? 0xAA : 0x15); /* all 1; then -1, 0, 0, 0 of the four quarters */
    memcpy(data + 64, &scale, sizeof scale);
    qsf_gb_str(&b, "general.architecture", "bitnet-b1.58");
    qsf_gb_tensor(&b, "blk.0.attn_q.weight", 36, 2, ne, data, sizeof data);
    assert_int_equal(qsf_gb_write(&b, gguf), 0);
    qsf_gb_free(&b);
    QsfSource *s = open_ok(gguf);
    qk_table_init(&kernels, QK_LEVEL_REF);
    qsf_test_expect_ok(
        qsf_weights_open(&w, s, qsf_source_find_tensor(s, "blk.0.attn_q.weight"), &kernels, &e), &e);
    for (uint64_t r = 0; r < 2; r++) {
        qsf_test_expect_ok(qsf_weights_read(&w, r, 1, raw, &e), &e);
        qsf_weights_unpack(&w, raw, 1, out);
        for (int i = 0; i < 128; i++) assert_true(out[i] == (r == 0 ? 0.25f : i < 32 ? -0.25f : 0.0f));
    }
    qsf_source_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fused),         cmocka_unit_test(test_fused_packed),
        cmocka_unit_test(test_directory),     cmocka_unit_test(test_choice),
        cmocka_unit_test(test_larger_blocks), cmocka_unit_test(test_small_already),
        cmocka_unit_test(test_bad_values),    cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_scale_of_all),
    };
    (void)snprintf(gguf, sizeof gguf, "%s", qsf_test_tmp("pack.gguf"));
    (void)snprintf(qsf, sizeof qsf, "%s", qsf_test_tmp("pack.qsf"));
    qsf_ledger_init(&ledger, 0);
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(gguf);
    unlink(qsf);
    qsf_ledger_destroy(&ledger);
    return rc;
}
