/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tensors of models with experts and recurrent layers that are computed when they are read: heads in another
 * order, columns, matrices cut from others, factors, rows by turns, rows of zeros. */
#include <math.h>

#include "src/base/half.h"
#include "tests/harness/derive_rig.h"

#define SIZES                                                                                          \
    "\"hidden_size\":128,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"num_hidden_layers\":1," \
    "\"intermediate_size\":8,\"vocab_size\":9,\"max_position_embeddings\":16,\"tie_word_embeddings\":true,"

static void add_3d(const char *name, unsigned salt, uint64_t matrices, uint64_t rows, uint64_t cols) {
    const uint64_t n = matrices * rows * cols, shape[] = { matrices, rows, cols };
    float *v = malloc(n * sizeof *v);
    assert_non_null(v);
    for (uint64_t i = 0; i < n; i++) v[i] = value(salt, i);
    add_bytes(name, "F32", shape, 3, v, n * sizeof *v);
    free(v);
}

/* --- heads of linear attention: 2 key heads of 8, with 3 value heads of 4 each --- */

#define L "model.language_model.layers.0.linear_attn."
#define QWEN                                                                             \
    "{\"architectures\":[\"Qwen3_5ForCausalLM\"]," SIZES                                 \
    "\"linear_num_key_heads\":2,\"linear_num_value_heads\":6,\"linear_key_head_dim\":8," \
    "\"linear_value_head_dim\":4,\"layer_types\":[\"linear_attention\"]}"

/* Row of the file that row r of the value heads is. */
static uint64_t value_row(uint64_t r) {
    const uint64_t head = r / 4;
    return (head % 2 * 3 + head / 2) * 4 + r % 4;
}

static void test_value_heads(void **state) {
    (void)state;
    begin();
    add("model.language_model.embed_tokens.weight", 1, TOKENS, HIDDEN);
    add(L "in_proj_qkv.weight", 2, 32 + 24, HIDDEN);
    add(L "in_proj_z.weight", 3, 24, HIDDEN);
    add(L "in_proj_b.weight", 4, 6, HIDDEN);
    add(L "out_proj.weight", 5, HIDDEN, 24);
    add(L "A_log", 6, 1, 6);
    open_good(QWEN);
    const QsfTensor *qkv = find("blk.0.attn_qkv.weight"), *z = find("blk.0.attn_gate.weight"),
                    *beta = find("blk.0.ssm_beta.weight"), *out = find("blk.0.ssm_out.weight"),
                    *a = find("blk.0.ssm_a");
    for (uint64_t r = 0; r < 24; r++) {
        expect_element(z, r, 9, value(3, value_row(r) * HIDDEN + 9));
        expect_element(qkv, 32 + r, 9, value(2, (32 + value_row(r)) * HIDDEN + 9));
        expect_element(out, 17, r, value(5, 17 * 24 + value_row(r)));
    }
    for (uint64_t r = 0; r < 32; r++) expect_element(qkv, r, 3, value(2, r * HIDDEN + 3));
    for (uint64_t h = 0; h < 6; h++) {
        const uint64_t from = h % 2 * 3 + h / 2;
        expect_element(beta, h, 1, value(4, from * HIDDEN + 1));
        expect_element(a, 0, h, -expf(value(6, from)));
    }
    expect_ranges();
    qsf_source_close(source);
}

static void expect_refused(const char *config, const char *words) {
    QsfErr e = { 0 };
    if (open_dir(config, &e) == QSF_OK) fail_msg("was accepted: %s", words);
    qsf_test_expect_err(&e, QSF_E_MODEL, words);
    assert_int_equal(ledger.total, 0);
}

static void test_bad_value_heads(void **state) {
    static const char *const names[] = { L "in_proj_qkv.weight", L "in_proj_z.weight" };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        begin();
        add("model.language_model.embed_tokens.weight", 1, TOKENS, HIDDEN);
        add(names[i], 2, 20, HIDDEN);
        expect_refused(QWEN, names[i]);
    }
    begin();
    add("model.language_model.embed_tokens.weight", 1, TOKENS, HIDDEN);
    add(L "out_proj.weight", 2, HIDDEN, 20);
    expect_refused(QWEN, "out_proj.weight");
}

/* --- keys and values of latent attention: 4 heads of 6 + 10 rows --- */

#define DEEPSEEK                                                                                          \
    "{\"architectures\":[\"DeepseekV2ForCausalLM\"]," SIZES "\"kv_lora_rank\":20,\"qk_nope_head_dim\":6," \
    "\"qk_rope_head_dim\":4,\"v_head_dim\":10,\"n_routed_experts\":2,\"num_experts_per_tok\":1"

static void test_cut(void **state) {
    (void)state;
    begin();
    add("model.embed_tokens.weight", 1, TOKENS, HIDDEN);
    add("model.layers.0.self_attn.kv_b_proj.weight", 2, 4 * 16, 20);
    open_good(DEEPSEEK "}");
    const QsfTensor *k = find("blk.0.attn_k_b.weight"), *v = find("blk.0.attn_v_b.weight");
    assert_int_equal(k->ne[0], 6);
    assert_int_equal(k->ne[1], 20);
    assert_int_equal(k->ne[2], 4);
    assert_int_equal(v->ne[1], 10);
    for (uint64_t head = 0; head < 4; head++) {
        for (uint64_t c = 0; c < 20; c++) {
            for (uint64_t i = 0; i < 6; i++)
                expect_element(k, head * 20 + c, i, value(2, (head * 16 + i) * 20 + c));
            for (uint64_t i = 0; i < 10; i++)
                expect_element(v, head * 10 + i, c, value(2, (head * 16 + 6 + i) * 20 + c));
        }
    }
    expect_ranges();
    qsf_source_close(source);

    begin();
    add("model.embed_tokens.weight", 1, TOKENS, HIDDEN);
    add("model.layers.0.self_attn.kv_b_proj.weight", 2, 4 * 15, 20);
    expect_refused(DEEPSEEK "}", "kv_b_proj.weight");
}

/* F8 in blocks of 5 rows and 8 columns: heads begin within blocks, and the last blocks are smaller. */
static void test_cut_f8(void **state) {
    static const uint64_t dims[] = { 64, 20 }, shape[] = { 13, 3 };
    unsigned char codes[64 * 20];
    float scales[13 * 3];
    (void)state;
    for (size_t i = 0; i < sizeof codes; i++) codes[i] = (unsigned char)(i * 31 % 0x78);
    for (size_t i = 0; i < 39; i++) scales[i] = 0.3f + (float)i;
    begin();
    add("model.embed_tokens.weight", 1, TOKENS, HIDDEN);
    add_bytes("model.layers.0.self_attn.kv_b_proj.weight", "F8_E4M3", dims, 2, codes, sizeof codes);
    add_bytes("model.layers.0.self_attn.kv_b_proj.weight_scale_inv", "F32", shape, 2, scales, sizeof scales);
    open_good(DEEPSEEK ",\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[5,8]}}");
    const QsfTensor *k = find("blk.0.attn_k_b.weight"), *v = find("blk.0.attn_v_b.weight");
    assert_int_equal(k->dtype, QK_GGML_BF16);
    assert_int_equal(v->dtype, QK_GGML_BF16);
    for (uint64_t r = 0; r < 64; r++) {
        const uint64_t head = r / 16, i = r % 16;
        for (uint64_t c = 0; c < 20; c++) {
            const float want = rounded(qsf_float_of(QK_GGML_F8_E4M3, &codes[r * 20 + c]) *
                                       scales[r / 5 * 3 + c / 8]);
            if (i < 6)
                expect_element(k, head * 20 + c, i, want);
            else
                expect_element(v, head * 10 + i - 6, c, want);
        }
    }
    expect_ranges();
    qsf_source_close(source);
}

/* Experts of Llama 4 with a scale for each output, which is a column: gate and up side by side, and down. */
static void test_experts_f8(void **state) {
    static const uint64_t dims[2][3] = { { 3, HIDDEN, 16 }, { 3, 8, HIDDEN } };
    static const uint64_t shape[2][3] = { { 3, 1, 16 }, { 3, HIDDEN, 1 } };
    static const char *const names[] = { "gate_up", "down" };
    unsigned char codes[3 * HIDDEN * 16];
    float scales[3 * HIDDEN];
    (void)state;
    begin();
    add("model.embed_tokens.weight", 1, TOKENS, HIDDEN);
    for (size_t i = 0; i < sizeof codes; i++) codes[i] = (unsigned char)(i * 31 % 0x78);
    for (size_t i = 0; i < 3 * HIDDEN; i++) scales[i] = 0.3f + (float)i;
    for (size_t i = 0; i < 2; i++) {
        char name[96];
        snprintf(name, sizeof name, "model.layers.0.feed_forward.experts.%s_proj", names[i]);
        add_bytes(name, "F8_E4M3", dims[i], 3, codes, 3 * dims[i][1] * dims[i][2]);
        snprintf(name, sizeof name, "model.layers.0.feed_forward.experts.%s_proj_scale", names[i]);
        add_bytes(name, "F32", shape[i], 3, scales, 3 * dims[i][2] * sizeof *scales);
    }
    open_good("{\"architectures\":[\"Llama4ForCausalLM\"]," SIZES "\"num_local_experts\":3,"
              "\"num_experts_per_tok\":1,\"intermediate_size_mlp\":8,\"interleave_moe_layer_step\":1,"
              "\"quantization_config\":{\"quant_method\":\"fbgemm_fp8\"}}");
    const QsfTensor *up = find("blk.0.ffn_up_exps.weight"), *down = find("blk.0.ffn_down_exps.weight");
    for (uint64_t e = 0; e < 3; e++) {
        for (uint64_t i = 0; i < 8; i++) {
            for (uint64_t c = 0; c < HIDDEN; c++) {
                const unsigned char *u = &codes[(e * HIDDEN + c) * 16 + 8 + i],
                                    *d = &codes[(e * 8 + i) * HIDDEN + c];
                expect_element(up, e * 8 + i, c,
                               rounded(qsf_float_of(QK_GGML_F8_E4M3, u) * scales[e * 16 + 8 + i]));
                expect_element(down, e * HIDDEN + c, i,
                               rounded(qsf_float_of(QK_GGML_F8_E4M3, d) * scales[e * HIDDEN + c]));
            }
        }
    }
    expect_ranges();
    qsf_source_close(source);
}

/* --- gate and up by turns --- */

#define E "model.layers.0.mlp.experts."
#define OSS \
    "{\"architectures\":[\"GptOssForCausalLM\"]," SIZES "\"num_local_experts\":3,\"num_experts_per_tok\":1"

static void test_turns(void **state) {
    (void)state;
    begin();
    add("model.embed_tokens.weight", 1, TOKENS, HIDDEN);
    add_3d(E "gate_up_proj", 2, 3, HIDDEN, 16);
    add(E "gate_up_proj_bias", 3, 3, 16);
    open_good(OSS "}");
    const char *const names[] = { "gate", "up" };
    for (uint64_t k = 0; k < 2; k++) {
        char name[64];
        snprintf(name, sizeof name, "blk.0.ffn_%s_exps.weight", names[k]);
        const QsfTensor *w = find(name);
        snprintf(name, sizeof name, "blk.0.ffn_%s_exps.bias", names[k]);
        const QsfTensor *b = find(name);
        assert_int_equal(w->ne[2], 3);
        for (uint64_t e = 0; e < 3; e++) {
            for (uint64_t i = 0; i < 8; i++) {
                expect_element(b, e, i, value(3, e * 16 + 2 * i + k));
                for (uint64_t c = 0; c < HIDDEN; c += 5)
                    expect_element(w, e * 8 + i, c, value(2, (e * HIDDEN + c) * 16 + 2 * i + k));
            }
        }
    }
    expect_ranges();
    qsf_source_close(source);
}

/* Blocks of 32 elements: byte j has elements 2j and 2j + 1; GGML's has j and j + 16. */
static void test_turns_packed(void **state) {
    enum { ROWS = 8, BLOCKS = 4 };
    static const uint64_t shape[] = { 3, ROWS, BLOCKS, 16 };
    unsigned char codes[3 * ROWS * BLOCKS * 16], scales[3 * ROWS * BLOCKS];
    (void)state;
    for (size_t i = 0; i < sizeof codes; i++) codes[i] = (unsigned char)(i * 73);
    for (size_t i = 0; i < sizeof scales; i++) scales[i] = (unsigned char)(100 + i % 40);
    begin();
    add("model.embed_tokens.weight", 1, TOKENS, HIDDEN);
    add_bytes(E "gate_up_proj_blocks", "U8", shape, 4, codes, sizeof codes);
    add_bytes(E "gate_up_proj_scales", "U8", shape, 3, scales, sizeof scales);
    open_good(OSS ",\"quantization_config\":{\"quant_method\":\"mxfp4\"}}");
    const QsfTensor *t = find("blk.0.ffn_up_exps.weight");
    assert_int_equal(t->dtype, QK_GGML_MXFP4);
    unsigned char *all = whole(t);
    for (size_t r = 0; r < 3 * ROWS / 2; r++) {
        const size_t from = r / (ROWS / 2) * ROWS + r % (ROWS / 2) * 2 + 1;
        for (size_t b = 0; b < BLOCKS; b++) {
            const unsigned char *got = all + (r * BLOCKS + b) * 17, *src = codes + (from * BLOCKS + b) * 16;
            assert_int_equal(got[0], scales[from * BLOCKS + b]);
            for (unsigned i = 0; i < 32; i++)
                assert_int_equal(got[1 + i % 16] >> (i / 16 * 4) & 15, src[i / 2] >> (i % 2 * 4) & 15);
        }
    }
    free(all);
    expect_ranges();
    qsf_source_close(source);
}

/* --- factors --- */

static void test_factors(void **state) {
    static const uint64_t shape[] = { HIDDEN, HIDDEN };
    unsigned char half[2 * HIDDEN * HIDDEN];
    (void)state;
    for (uint64_t i = 0; i < HIDDEN * HIDDEN; i++)
        qsf_half_put(half + 2 * i, qsf_half_bits((double)value(3, i)));
    begin();
    add("model.embed_tokens.weight", 1, TOKENS, HIDDEN);
    add_bytes("model.layers.0.self_attn.q_proj.weight", "F16", shape, 2, half, sizeof half);
    add("model.layers.0.mamba.in_proj.weight", 4, 16 + 16 + 4 + 4 + 2, HIDDEN);
    open_good("{\"architectures\":[\"FalconH1ForCausalLM\"]," SIZES
              "\"mamba_d_ssm\":16,\"mamba_n_heads\":2,\"mamba_d_state\":4,\"embedding_multiplier\":0.3,"
              "\"lm_head_multiplier\":0.3,"
              "\"attention_in_multiplier\":1.1,\"ssm_in_multiplier\":2,\"ssm_multipliers\":[1,3,5,7,9]}");
    const QsfTensor *embed = find("token_embd.weight"), *q = find("blk.0.attn_q.weight"),
                    *in = find("blk.0.ssm_in.weight");
    assert_int_equal(q->dtype, QK_GGML_F16);
    expect_element(embed, 3, 7, value(1, 3 * HIDDEN + 7) * 0.3f);
    for (uint64_t i = 0; i < HIDDEN * HIDDEN; i += 37)
        expect_element(q, i / HIDDEN, i % HIDDEN, qsf_half_round((double)(value(3, i) * 1.1f)));
    for (uint64_t r = 0; r < 42; r++) {
        const float factor = r < 16 ? 1 : r < 32 ? 3 : r < 36 ? 5 : r < 40 ? 7 : 9;
        expect_element(in, r, 11, value(4, r * HIDDEN + 11) * (2 * factor));
    }
    expect_ranges();
    qsf_source_close(source);
}

/* --- rows of zeros --- */

static void test_padded(void **state) {
    (void)state;
    begin();
    add("model.embed_tokens.weight", 1, TOKENS, HIDDEN);
    add("model.embed_tokens_per_layer.weight", 2, TOKENS - 2, 16);
    open_good("{\"architectures\":[\"Gemma4ForCausalLM\"]," SIZES "\"head_dim\":16,\"global_head_dim\":16,"
              "\"hidden_size_per_layer_input\":16,\"hidden_activation\":\"gelu_pytorch_tanh\"}");
    const QsfTensor *t = find("per_layer_token_embd.weight");
    assert_int_equal(t->ne[1], TOKENS);
    for (uint64_t r = 0; r < TOKENS; r++)
        for (uint64_t c = 0; c < 16; c++) expect_element(t, r, c, r < TOKENS - 2 ? value(2, r * 16 + c) : 0);
    expect_ranges();
    qsf_source_close(source);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_value_heads, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_value_heads, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut_f8, setup, teardown),
        cmocka_unit_test_setup_teardown(test_experts_f8, setup, teardown),
        cmocka_unit_test_setup_teardown(test_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(test_turns_packed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_factors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_padded, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
