/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Model directories with weights in safetensors: metadata, names, and values in the order of GGUF, compared
 * with values computed by the test. Damaged files: t_safetensors_bad.c; contents of config.json:
 * t_hf_config.c. */
#include "tests/harness/hf_rig.h"

#include <math.h>

#include "qsf.h"
#include "src/file/dtype.h"
#include "src/file/rows.h"
#include "src/model/model.h"

static QsfSource *open_spec(const QsfHfSpec *spec) {
    QsfErr e = { 0 };
    QsfSource *s = NULL;
    assert_int_equal(qsf_test_write_hf_dir(dir, spec), 0);
    qsf_test_expect_ok(qsf_source_open(&s, dir, &ledger, &e), &e);
    assert_string_equal(qsf_source_format(s), "safetensors");
    assert_string_equal(qsf_source_path(s), dir);
    return s;
}

static void expect_u32(const QsfSource *s, const char *key, uint32_t want) {
    QsfErr e = { 0 };
    uint32_t v;
    assert_true(qsf_meta_has(s, key));
    qsf_test_expect_ok(qsf_meta_u32(s, key, 0, &v, &e), &e);
    assert_int_equal(v, want);
}

static void expect_f32(const QsfSource *s, const char *key, float want) {
    QsfErr e = { 0 };
    float v;
    assert_true(qsf_meta_has(s, key));
    qsf_test_expect_ok(qsf_meta_f32(s, key, 0, &v, &e), &e);
    assert_memory_equal(&v, &want, sizeof v);
}

static void expect_str(const QsfSource *s, const char *key, const char *want) {
    QsfErr e = { 0 };
    const char *v;
    qsf_test_expect_ok(qsf_meta_str(s, key, &v, NULL, &e), &e);
    assert_non_null(v);
    assert_string_equal(v, want);
}

static void test_metadata(void **state) {
    (void)state;
    QsfSource *s = open_spec(&(QsfHfSpec){ .vocab = 12 });
    expect_str(s, "general.architecture", "llama");
    expect_str(s, "general.name", strrchr(dir, '/') + 1);
    expect_u32(s, "llama.vocab_size", 12);
    expect_u32(s, "llama.context_length", 512);
    expect_u32(s, "llama.embedding_length", 24);
    expect_u32(s, "llama.block_count", 2);
    expect_u32(s, "llama.feed_forward_length", 40);
    expect_u32(s, "llama.attention.head_count", 4);
    expect_u32(s, "llama.attention.head_count_kv", 2);
    expect_u32(s, "llama.rope.dimension_count", 6);
    expect_f32(s, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    expect_f32(s, "llama.rope.freq_base", 20000.0f);
    assert_false(qsf_meta_has(s, "llama.attention.key_length"));
    assert_false(qsf_meta_has(s, "llama.rope.scaling.type"));
    expect_u32(s, "tokenizer.ggml.bos_token_id", 7);
    expect_u32(s, "tokenizer.ggml.eos_token_id", 8); /* defined only in config.json */
    expect_str(s, "tokenizer.ggml.model", "gpt2");
    expect_str(s, "tokenizer.chat_template", "{{ messages }}");
    QsfMetaArray a;
    QsfErr e = { 0 };
    bool present;
    qsf_test_expect_ok(qsf_meta_array_open(s, "tokenizer.ggml.tokens", QSF_META_STRING, &a, &present, &e),
                       &e);
    assert_int_equal(a.count, 12); /* as many as the embedding has rows */
    qsf_meta_array_close(&a);
    qsf_source_close(s);
}

/* --- tensors --- */

typedef struct Want {
    const char *gguf, *hf;
    uint32_t n_dims;
    uint64_t cols, rows;
    uint32_t heads;
} Want;

/* The row of the file that is GGUF's row r, by the definition of the permutation: (head, half, i) to (head,
 * i, half). */
static uint64_t file_row(uint64_t r, uint64_t rows, uint32_t heads) {
    if (heads == 0) return r;
    uint64_t half = rows / heads / 2;
    for (uint64_t head = 0; head < heads; head++)
        for (uint64_t j = 0; j < 2; j++)
            for (uint64_t i = 0; i < half; i++)
                if ((head * half + i) * 2 + j == r) return (head * 2 + j) * half + i;
    return UINT64_MAX;
}

static void expect_values(const QsfSource *s, const QsfTensor *t, const Want *w) {
    QsfErr e = { 0 };
    float got[64];
    bool bias = w->n_dims == 1 && w->heads > 0;
    for (uint64_t r = 0; r < w->rows; r++) {
        qsf_test_expect_ok(qsf_source_read_rows(s, t, r, 1, got, &e), &e);
        for (uint64_t c = 0; c < w->cols; c++) {
            uint64_t at = bias ? file_row(c, w->cols, w->heads)
                               : file_row(r, w->rows, w->heads) * w->cols + c;
            float want = qsf_test_hf_value(w->hf, at);
            assert_memory_equal(&got[c], &want, sizeof want);
        }
    }
    float *all = malloc(w->rows * w->cols * sizeof *all);
    assert_non_null(all);
    qsf_test_expect_ok(qsf_source_read_rows(s, t, 0, w->rows, all, &e), &e);
    assert_memory_equal(all + (w->rows - 1) * w->cols, got, w->cols * sizeof *got);
    free(all);
    assert_int_equal(qsf_source_read_rows(s, t, 1, w->rows, got, &e), QSF_E_RUNTIME);
}

static void expect_tensor(const QsfSource *s, const Want *w) {
    const QsfTensor *t = qsf_source_find_tensor(s, w->gguf);
    if (t == NULL) fail_msg("no tensor %s", w->gguf);
    assert_int_equal(t->n_dims, w->n_dims);
    assert_int_equal(t->ne[0], w->cols);
    assert_int_equal(t->ne[1], w->rows);
    assert_int_equal(t->ne[2] * t->ne[3], 1);
    /* Reordered tensors are in the virtual file. */
    assert_int_equal(t->file >= qsf_source_n_files(s), w->heads > 0);
    assert_int_equal(qsf_tensor_n_rows(t), w->rows);
    expect_values(s, t, w);
}

/* Every tensor of a model of 2 layers, hidden 24, 4 and 2 heads of hd, FFN 40. */
static void expect_all(const QsfSource *s, uint64_t hd, bool biases) {
    const Want layer[] = {
        { "attn_norm", "input_layernorm", 1, 24, 1, 0 },
        { "attn_q", "self_attn.q_proj", 2, 24, 4 * hd, 4 },
        { "attn_k", "self_attn.k_proj", 2, 24, 2 * hd, 2 },
        { "attn_v", "self_attn.v_proj", 2, 24, 2 * hd, 0 },
        { "attn_output", "self_attn.o_proj", 2, 4 * hd, 24, 0 },
        { "ffn_norm", "post_attention_layernorm", 1, 24, 1, 0 },
        { "ffn_gate", "mlp.gate_proj", 2, 24, 40, 0 },
        { "ffn_up", "mlp.up_proj", 2, 24, 40, 0 },
        { "ffn_down", "mlp.down_proj", 2, 40, 24, 0 },
    };
    for (unsigned i = 0; i < 2; i++) {
        for (size_t j = 0; j < sizeof layer / sizeof *layer; j++) {
            char gguf[80], hf[80];
            Want w = layer[j];
            snprintf(gguf, sizeof gguf, "blk.%u.%s.weight", i, w.gguf);
            snprintf(hf, sizeof hf, "model.layers.%u.%s.weight", i, layer[j].hf);
            w.gguf = gguf;
            w.hf = hf;
            expect_tensor(s, &w);
            if (!biases || w.n_dims == 1) continue;
            snprintf(gguf, sizeof gguf, "blk.%u.%s.bias", i, layer[j].gguf);
            snprintf(hf, sizeof hf, "model.layers.%u.%s.bias", i, layer[j].hf);
            expect_tensor(s, &(Want){ gguf, hf, 1, w.rows, 1, w.heads });
        }
    }
    expect_tensor(s, &(Want){ "token_embd.weight", "model.embed_tokens.weight", 2, 24, QSF_HF_TOKENS, 0 });
    expect_tensor(s, &(Want){ "output_norm.weight", "model.norm.weight", 1, 24, 1, 0 });
}

static void test_tensors(void **state) {
    static const char *const types[] = { "F32", "F16", "BF16" };
    static const uint32_t numbers[] = { 0, 1, 30 };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const bool biases = i == 1;
        QsfSource *s = open_spec(&(QsfHfSpec){ .dtype = types[i], .biases = biases, .rotary = true });
        /* rotary_emb.inv_freq is skipped */
        assert_int_equal(qsf_source_n_tensors(s), 2 * (biases ? 16 : 9) + 3);
        assert_int_equal(qsf_source_find_tensor(s, "token_embd.weight")->dtype, numbers[i]);
        expect_all(s, 6, biases);
        expect_tensor(s, &(Want){ "output.weight", "lm_head.weight", 2, 24, QSF_HF_TOKENS, 0 });
        qsf_source_close(s);
    }
}

static void test_shards(void **state) {
    (void)state;
    QsfSource *s = open_spec(&(QsfHfSpec){ .shards = true, .dtype = "BF16", .tied = true, .head_dim = 10 });
    assert_int_equal(qsf_source_n_files(s), 2);
    assert_int_equal(qsf_source_n_tensors(s), 20);
    expect_u32(s, "llama.attention.key_length", 10);
    expect_u32(s, "llama.attention.value_length", 10);
    expect_all(s, 10, false);
    assert_null(qsf_source_find_tensor(s, "output.weight"));
    assert_int_equal(qsf_source_find_tensor(s, "blk.0.attn_v.weight")->file, 0);
    assert_int_equal(qsf_source_find_tensor(s, "blk.1.attn_v.weight")->file, 1);
    qsf_source_close(s);
}

/* Rotating halves of the file's rows equals rotating pairs of GGUF's. */
static void test_rotation(void **state) {
    QsfErr e = { 0 };
    float rows[24 * 24], column[6], turned[6];
    (void)state;
    QsfSource *s = open_spec(NULL);
    const QsfTensor *t = qsf_source_find_tensor(s, "blk.1.attn_q.weight");
    qsf_test_expect_ok(qsf_source_read_rows(s, t, 0, 24, rows, &e), &e);
    for (uint64_t head = 0; head < 4; head++) {
        for (uint64_t i = 0; i < 6; i++)
            column[i] = qsf_test_hf_value("model.layers.1.self_attn.q_proj.weight", (head * 6 + i) * 24);
        for (unsigned i = 0; i < 3; i++) {
            float c = cosf(0.5f + (float)i), n = sinf(0.5f + (float)i);
            turned[i] = column[i] * c - column[i + 3] * n;
            turned[i + 3] = column[i + 3] * c + column[i] * n;
            float a = rows[(head * 6 + 2 * i) * 24], b = rows[(head * 6 + 2 * i + 1) * 24];
            assert_true(fabsf(a * c - b * n - turned[i]) < 1e-6f);
            assert_true(fabsf(b * c + a * n - turned[i + 3]) < 1e-6f);
        }
    }
    qsf_source_close(s);
}

/* A copy of the embedding as a head that is declared tied is skipped. */
static void test_tied_copy(void **state) {
    (void)state;
    QsfSource *s = open_spec(&(QsfHfSpec){ .last = ",\"tie_word_embeddings\":true" });
    assert_null(qsf_source_find_tensor(s, "output.weight"));
    assert_int_equal(qsf_source_n_tensors(s), 20);
    qsf_source_close(s);
}

/* --- a model that exists as GGUF too --- */

/* Hugging Face name of a GGUF tensor. */
static void other_name(const char *gguf, char *out, size_t cap) {
    static const char *const names[][2] = {
        { "token_embd", "model.embed_tokens" },
        { "output_norm", "model.norm" },
        { "output", "lm_head" },
        { "attn_norm", "input_layernorm" },
        { "attn_q", "self_attn.q_proj" },
        { "attn_k", "self_attn.k_proj" },
        { "attn_v", "self_attn.v_proj" },
        { "attn_output", "self_attn.o_proj" },
        { "ffn_norm", "post_attention_layernorm" },
        { "ffn_gate", "mlp.gate_proj" },
        { "ffn_up", "mlp.up_proj" },
        { "ffn_down", "mlp.down_proj" },
    };
    unsigned layer;
    char stem[64] = "";
    bool of_layer = sscanf(gguf, "blk.%u.%63[a-z_].weight", &layer, stem) == 2;
    if (!of_layer) assert_int_equal(sscanf(gguf, "%63[a-z_].weight", stem), 1);
    *out = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i][0], stem) != 0) continue;
        if (of_layer)
            snprintf(out, cap, "model.layers.%u.%s.weight", layer, names[i][1]);
        else
            snprintf(out, cap, "%s.weight", names[i][1]);
    }
}

static float *all_rows(const QsfSource *s, const QsfTensor *t) {
    QsfErr e = { 0 };
    float *rows = malloc((size_t)(t->ne[0] * t->ne[1]) * sizeof *rows);
    assert_non_null(rows);
    qsf_test_expect_ok(qsf_source_read_rows(s, t, 0, t->ne[1], rows, &e), &e);
    return rows;
}

/* t with its rows in Hugging Face order. */
static void add_reordered(QsfStBuild *b, const QsfSource *s, const QsfTensor *t, uint32_t heads) {
    uint64_t cols = t->ne[0], n = t->ne[1], shape[] = { n, cols };
    char name[128];
    float *rows = all_rows(s, t), *out = malloc((size_t)(cols * n) * sizeof *out);
    assert_non_null(out);
    for (uint64_t r = 0; r < n; r++)
        memcpy(out + file_row(r, n, heads) * cols, rows + r * cols, cols * sizeof *out);
    other_name(t->name, name, sizeof name);
    qsf_sb_tensor(b, name, "F32", t->n_dims, t->n_dims == 1 ? shape + 1 : shape, out,
                  (size_t)(cols * n) * sizeof *out);
    free(rows);
    free(out);
}

static void expect_same_numbers(const QsfSource *a, const QsfSource *b) {
    QsfErr e = { 0 };
    for (size_t i = 0; i < qsf_meta_count(a); i++) {
        float x, y;
        const char *key = qsf_meta_at(a, i, NULL, NULL, NULL);
        if (strncmp(key, "llama.", 6) != 0) continue;
        qsf_test_expect_ok(qsf_meta_f32(a, key, 0, &x, &e), &e);
        qsf_test_expect_ok(qsf_meta_f32(b, key, -1, &y, &e), &e);
        if (memcmp(&x, &y, sizeof x) != 0) fail_msg("%s: %g, but %g", key, (double)x, (double)y);
    }
}

static void test_same_as_gguf(void **state) {
    QsfErr e = { 0 };
    QsfSource *gguf, *s;
    QsfStBuild b = { 0 };
    char file[128];
    (void)state;
    const char *path = qsf_test_data("models/stories260K.gguf");
    if (path == NULL) skip();
    qsf_test_expect_ok(qsf_source_open(&gguf, path, &ledger, &e), &e);
    const QsfHfSpec spec = { .layers = 5,
                             .hidden = 64,
                             .heads = 8,
                             .kv_heads = 4,
                             .ffn = 172,
                             .vocab = 512,
                             .tied = qsf_source_find_tensor(gguf, "output.weight") == NULL,
                             .last = ",\"rope_theta\":10000.0" };
    assert_int_equal(qsf_test_write_hf_dir(dir, &spec), 0);
    for (uint64_t i = 0; i < qsf_source_n_tensors(gguf); i++) {
        const QsfTensor *t = qsf_source_tensor(gguf, i);
        add_reordered(&b, gguf, t,
                      strstr(t->name, "attn_q.") != NULL   ? 8
                      : strstr(t->name, "attn_k.") != NULL ? 4
                                                           : 0);
    }
    snprintf(file, sizeof file, "%s/model.safetensors", dir);
    assert_int_equal(qsf_sb_write(&b, file), 0);
    qsf_sb_free(&b);
    qsf_test_expect_ok(qsf_source_open(&s, dir, &ledger, &e), &e);
    expect_same_numbers(gguf, s);
    assert_int_equal(qsf_source_n_tensors(s), qsf_source_n_tensors(gguf));
    for (uint64_t i = 0; i < qsf_source_n_tensors(gguf); i++) {
        const QsfTensor *t = qsf_source_tensor(gguf, i), *u = qsf_source_find_tensor(s, t->name);
        assert_non_null(u);
        assert_memory_equal(u->ne, t->ne, sizeof t->ne);
        float *want = all_rows(gguf, t), *got = all_rows(s, u);
        assert_memory_equal(got, want, (size_t)(t->ne[0] * t->ne[1]) * sizeof *got);
        free(want);
        free(got);
    }
    qsf_source_close(s);
    qsf_source_close(gguf);
}

/* --- numbers --- */

static void test_halves(void **state) {
    static const struct {
        uint16_t bits;
        float value;
    } f16[] = { { 0x0001, 0x1p-24f }, { 0x83FF, -0x3FFp-24f }, { 0x0400, 0x1p-14f }, { 0x3C00, 1.0f },
                { 0xC100, -2.5f },    { 0x7BFF, 65504.0f },    { 0x7C00, INFINITY }, { 0xFC00, -INFINITY },
                { 0x8000, -0.0f },    { 0x3555, 0x1.554p-2f }, { 0x0000, 0.0f },     { 0x4248, 0x1.92p1f } },
      bf16[] = { { 0x3F80, 1.0f },
                 { 0xC040, -3.0f },
                 { 0x0001, 0x1p-133f },
                 { 0x7F80, INFINITY },
                 { 0x8000, -0.0f },
                 { 0x7F7F, 0x1.FEp127f },
                 { 0, 0 },
                 { 0x4049, 0x1.92p1f },
                 { 0xFF80, -INFINITY },
                 { 0x3EAB, 0x1.56p-2f },
                 { 0, 0 },
                 { 0, 0 } };
    (void)state;
    for (int which = 0; which < 2; which++) {
        uint64_t shape[] = { 12, 24 };
        unsigned char bytes[12 * 24 * 2] = { 0 };
        QsfStBuild b = { 0 };
        QsfErr e = { 0 };
        QsfSource *s;
        float got[24];
        assert_int_equal(qsf_test_write_hf_dir(dir, &(QsfHfSpec){ .vocab = 12 }), 0);
        for (size_t i = 0; i < 12; i++) memcpy(bytes + i * 48, which == 0 ? &f16[i].bits : &bf16[i].bits, 2);
        qsf_sb_tensor(&b, "model.embed_tokens.weight", which == 0 ? "F16" : "BF16", 2, shape, bytes,
                      sizeof bytes);
        qsf_sb_tensor(&b, "lm_head.weight", which == 0 ? "F16" : "BF16", 2, shape, bytes, sizeof bytes);
        char path[128];
        snprintf(path, sizeof path, "%s/model.safetensors", dir);
        assert_int_equal(qsf_sb_write(&b, path), 0);
        qsf_sb_free(&b);
        qsf_test_expect_ok(qsf_source_open(&s, dir, &ledger, &e), &e);
        for (uint64_t i = 0; i < 12; i++) {
            float want = which == 0 ? f16[i].value : bf16[i].value;
            qsf_test_expect_ok(qsf_source_read_rows(s, qsf_source_tensor(s, 0), i, 1, got, &e), &e);
            assert_memory_equal(&got[0], &want, sizeof want);
            uint16_t stored[24];
            qsf_test_expect_ok(qsf_source_read_stored(s, qsf_source_tensor(s, 0), i, 1, stored, &e), &e);
            assert_int_equal(stored[0], which == 0 ? f16[i].bits : bf16[i].bits);
        }
        qsf_source_close(s);
    }
}

/* Floats of eight bits, with every code of a byte in the embedding; NaN where the format has one. */
static void test_eights(void **state) {
    static const struct {
        uint8_t code;
        float e4m3, e5m2;
    } known[] = { { 0x00, 0.0f, 0.0f },       { 0x01, 0x1p-9f, 0x1p-16f }, { 0x38, 1.0f, 0.5f },
                  { 0x3c, 1.5f, 1.0f },       { 0x80, -0.0f, -0.0f },      { 0xc1, -2.25f, -2.5f },
                  { 0x7e, 448.0f, NAN },      { 0x7f, NAN, NAN },          { 0x7b, 352.0f, 57344.0f },
                  { 0x7c, 384.0f, INFINITY }, { 0xfc, -384.0f, -INFINITY } };
    (void)state;
    for (int which = 0; which < 2; which++) {
        const char *name = which == 0 ? "F8_E4M3" : "F8_E5M2";
        uint64_t shape[] = { 12, 24 };
        unsigned char bytes[12 * 24];
        QsfStBuild b = { 0 };
        QsfErr e = { 0 };
        QsfSource *s;
        float got[12 * 24];
        char path[128];
        assert_int_equal(qsf_test_write_hf_dir(dir, &(QsfHfSpec){ .vocab = 12 }), 0);
        for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)i;
        qsf_sb_tensor(&b, "model.embed_tokens.weight", name, 2, shape, bytes, sizeof bytes);
        qsf_sb_tensor(&b, "lm_head.weight", name, 2, shape, bytes, sizeof bytes);
        snprintf(path, sizeof path, "%s/model.safetensors", dir);
        assert_int_equal(qsf_sb_write(&b, path), 0);
        qsf_sb_free(&b);
        qsf_test_expect_ok(qsf_source_open(&s, dir, &ledger, &e), &e);
        const QsfTensor *t = qsf_source_find_tensor(s, "token_embd.weight");
        assert_int_equal(t->dtype, which == 0 ? QK_GGML_F8_E4M3 : QK_GGML_F8_E5M2);
        qsf_test_expect_ok(qsf_source_read_rows(s, t, 0, 12, got, &e), &e);
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
            const float want = which == 0 ? known[i].e4m3 : known[i].e5m2, is = got[known[i].code];
            if (isnan(want))
                assert_true(isnan(is));
            else
                assert_memory_equal(&is, &want, sizeof is);
        }
        qsf_source_close(s);
    }
}

/* --- as a model --- */

#define LLAMA3                                                                            \
    ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0," \
    "\"high_freq_factor\":4.0,"                                                           \
    "\"original_max_position_embeddings\":256}"

/* The divisor of each frequency, from the published definition: by wavelength, in three ranges. */
static float divisor(double pair, double dim) {
    double wave = 6.283185307179586 / pow(20000.0, -2 * pair / dim);
    if (wave < 256.0 / 4) return 1;
    if (wave > 256.0) return 8;
    double smooth = (256.0 / wave - 1) / (4 - 1);
    return (float)(1 / ((1 - smooth) / 8 + smooth));
}

static void test_rope_factors(void **state) {
    QsfErr e = { 0 };
    QsfModel m;
    float got[8];
    unsigned between = 0;
    (void)state;
    assert_int_equal(qsf_test_write_hf_dir(dir, &(QsfHfSpec){ .head_dim = 16, .last = LLAMA3 }), 0);
    qsf_test_expect_ok(qsf_model_open(&m, dir, NULL, &ledger, &e), &e);
    const QsfTensor *t = qsf_source_find_tensor(m.src, "rope_freqs.weight");
    assert_non_null(t);
    assert_int_equal(t->file, QSF_FILE_NONE);
    assert_int_equal(t->ne[0], 8);
    qsf_test_expect_ok(qsf_source_read_rows(m.src, t, 0, 1, got, &e), &e);
    for (unsigned i = 0; i < 8; i++) {
        assert_true(fabsf(got[i] - divisor(i, 16)) < 1e-5f);
        between += got[i] > 1 && got[i] < 8;
    }
    assert_true(between > 0 && got[0] <= 1 && got[7] >= 8);
    assert_int_equal(qsf_source_read_bytes(m.src, t, 30, got, 4, &e), QSF_E_RUNTIME);
    qsf_model_close(&m);
}

static void test_model(void **state) {
    QsfErr e = { 0 };
    QsfModel m;
    (void)state;
    assert_int_equal(qsf_test_write_hf_dir(dir, &(QsfHfSpec){ .shards = true, .biases = true, .vocab = 16 }),
                     0);
    qsf_test_expect_ok(qsf_model_open(&m, dir, NULL, &ledger, &e), &e);
    assert_int_equal(m.hp.n_layers, 2);
    assert_int_equal(m.hp.head_dim, 6);
    assert_int_equal(m.hp.n_vocab, 16);
    assert_false(m.prog.tied_head);
    qsf_model_close(&m);
}

static void test_runs(void **state) {
    (void)state;
    assert_int_equal(qsf_test_write_hf_dir(dir, &(QsfHfSpec){ .hidden = 64, .ffn = 64 }), 0);
    QSFEngine *m = qsf_load(dir, NULL);
    if (m == NULL) fail_msg("%s", qsf_error());
    qsf_free(m);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_metadata),  TEST(test_tensors), TEST(test_shards),       TEST(test_rotation),
        TEST(test_tied_copy), TEST(test_halves),  TEST(test_eights),       TEST(test_rope_factors),
        TEST(test_model),     TEST(test_runs),    TEST(test_same_as_gguf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
