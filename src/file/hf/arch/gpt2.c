/* SPDX-License-Identifier: GPL-3.0-or-later */
/* GPT-2 and models with its names: layer norms, fused queries, keys and values. Sources as in hf/arch/llama.c;
 * ggml-org/llama.cpp conversion/gpt2.py, gptneox.py, falcon.py, bloom.py, mpt.py, starcoder.py. */
#include "src/file/hf/tables.h"

#define MATRIX(hf, gguf) QSF_HF_MATRIX(hf, gguf), QSF_HF_BIAS(hf, gguf)
#define NORM(hf, gguf)   QSF_HF_VECTOR(hf, gguf), QSF_HF_BIAS(hf, gguf)
#define TRANSPOSED(hf, gguf) \
    QSF_HF_HOW(hf ".weight", gguf ".weight", 2, QSF_DERIVE_TRANSPOSE), QSF_HF_BIAS(hf, gguf)

static const char *const transformer[] = { "transformer.", NULL };
static const QsfHfKey *const keys[] = { qsf_hf_keys_layer_norm, NULL };

/* --- GPT-2: weights are stored by columns --- */

static const QsfHfName gpt2_names[] = {
    QSF_HF_MATRIX("wte", "token_embd"),
    QSF_HF_MATRIX("wpe", "position_embd"),
    QSF_HF_MATRIX("lm_head", "output"),
    NORM("ln_f", "output_norm"),
    NORM("h.#.ln_1", QSF_HF_B("attn_norm")),
    NORM("h.#.ln_2", QSF_HF_B("ffn_norm")),
    TRANSPOSED("h.#.attn.c_attn", QSF_HF_B("attn_qkv")),
    TRANSPOSED("h.#.attn.c_proj", QSF_HF_B("attn_output")),
    TRANSPOSED("h.#.mlp.c_fc", QSF_HF_B("ffn_up")),
    TRANSPOSED("h.#.mlp.c_proj", QSF_HF_B("ffn_down")),
    QSF_HF_IGNORED("h.#.attn.bias"), /* the causal mask */
    QSF_HF_IGNORED("h.#.attn.masked_bias"),
    QSF_HF_END,
};
static const QsfHfName *const gpt2_tables[] = { gpt2_names, NULL };
static const QsfHfMust gpt2_must[] = {
    { "activation_function", "gelu_new|gelu_pytorch_tanh|gelu_fast" },
    { "scale_attn_weights", "true" },
    { "scale_attn_by_inverse_layer_idx", "false" },
    { "add_cross_attention", "false" },
    QSF_HF_END,
};

/* --- Starcoder: GPT-2 with one key and value, weights stored by rows --- */

static const QsfHfName bigcode_names[] = {
    QSF_HF_MATRIX("wte", "token_embd"),
    QSF_HF_MATRIX("wpe", "position_embd"),
    QSF_HF_MATRIX("lm_head", "output"),
    NORM("ln_f", "output_norm"),
    NORM("h.#.ln_1", QSF_HF_B("attn_norm")),
    NORM("h.#.ln_2", QSF_HF_B("ffn_norm")),
    MATRIX("h.#.attn.c_attn", QSF_HF_B("attn_qkv")),
    MATRIX("h.#.attn.c_proj", QSF_HF_B("attn_output")),
    MATRIX("h.#.mlp.c_fc", QSF_HF_B("ffn_up")),
    MATRIX("h.#.mlp.c_proj", QSF_HF_B("ffn_down")),
    QSF_HF_IGNORED("h.#.attn.bias"),
    QSF_HF_END,
};
static const QsfHfName *const bigcode_tables[] = { bigcode_names, NULL };
static const QsfHfMust bigcode_must[] = {
    { "activation_function", "gelu|gelu_pytorch_tanh|gelu_new|gelu_fast" },
    { "scale_attn_weights", "true" },
    { "multi_query", "true" },
    QSF_HF_END,
};

/* --- GPT-NeoX, Bloom: queries, keys and values of each head together --- */

#define BY_HEAD(hf, suffix, n)                                                         \
    QSF_HF_PART(hf suffix, QSF_HF_B("attn_qkv" suffix), n, qsf_hf_rows_head_q, 0),     \
        QSF_HF_PART(hf suffix, QSF_HF_B("attn_qkv" suffix), n, qsf_hf_rows_head_k, 1), \
        QSF_HF_PART(hf suffix, QSF_HF_B("attn_qkv" suffix), n, qsf_hf_rows_head_v, 2)

static const QsfHfName neox_names[] = {
    QSF_HF_MATRIX("embed_in", "token_embd"),
    QSF_HF_MATRIX("embed_out", "output"),
    NORM("final_layer_norm", "output_norm"),
    NORM(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    NORM(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("ffn_norm")),
    BY_HEAD(QSF_HF_L("attention.query_key_value"), ".weight", 2),
    BY_HEAD(QSF_HF_L("attention.query_key_value"), ".bias", 1),
    MATRIX(QSF_HF_L("attention.dense"), QSF_HF_B("attn_output")),
    MATRIX(QSF_HF_L("mlp.dense_h_to_4h"), QSF_HF_B("ffn_up")),
    MATRIX(QSF_HF_L("mlp.dense_4h_to_h"), QSF_HF_B("ffn_down")),
    QSF_HF_IGNORED(QSF_HF_L("attention.bias")),
    QSF_HF_IGNORED(QSF_HF_L("attention.masked_bias")),
    QSF_HF_IGNORED(QSF_HF_L("attention.rotary_emb.inv_freq")),
    QSF_HF_END,
};
static const QsfHfName *const neox_tables[] = { neox_names, NULL };
static const QsfHfKey neox_residual[] = {
    { "use_parallel_residual", "use_parallel_residual", QSF_HF_BOOL, 1, 0, 0 },
    QSF_HF_END,
};
static const QsfHfKey *const neox_keys[] = { qsf_hf_keys_layer_norm, neox_residual, NULL };
/* The engine's GELU is the tanh form for all of these models, as in ggml-org/llama.cpp. */
static const QsfHfMust gelu_must[] = { { "hidden_act", "gelu|gelu_new|gelu_fast|gelu_pytorch_tanh" },
                                       QSF_HF_END };
static const char *const neox_prefixes[] = { "gpt_neox.", NULL };

static const QsfHfName bloom_names[] = {
    QSF_HF_MATRIX("word_embeddings", "token_embd"),
    NORM("word_embeddings_layernorm", "token_embd_norm"),
    QSF_HF_MATRIX("lm_head", "output"),
    NORM("ln_f", "output_norm"),
    NORM("h.#.input_layernorm", QSF_HF_B("attn_norm")),
    NORM("h.#.post_attention_layernorm", QSF_HF_B("ffn_norm")),
    BY_HEAD("h.#.self_attention.query_key_value", ".weight", 2),
    BY_HEAD("h.#.self_attention.query_key_value", ".bias", 1),
    MATRIX("h.#.self_attention.dense", QSF_HF_B("attn_output")),
    MATRIX("h.#.mlp.dense_h_to_4h", QSF_HF_B("ffn_up")),
    MATRIX("h.#.mlp.dense_4h_to_h", QSF_HF_B("ffn_down")),
    QSF_HF_END,
};
static const QsfHfName *const bloom_tables[] = { bloom_names, NULL };
static const QsfHfMust bloom_must[] = { { "apply_residual_connection_post_layernorm", "false" }, QSF_HF_END };

/* --- Falcon: queries, keys and values by groups --- */

static const QsfHfName falcon_names[] = {
    QSF_HF_MATRIX("word_embeddings", "token_embd"),
    QSF_HF_MATRIX("lm_head", "output"),
    NORM("ln_f", "output_norm"),
    NORM("h.#.input_layernorm", QSF_HF_B("attn_norm")), /* 7B; two norms: 40B and 180B */
    NORM("h.#.ln_mlp", QSF_HF_B("attn_norm")),
    NORM("h.#.ln_attn", QSF_HF_B("attn_norm_2")),
    QSF_HF_PART("h.#.self_attention.query_key_value.weight", QSF_HF_B("attn_qkv.weight"), 2,
                qsf_hf_rows_group_q, 0),
    QSF_HF_PART("h.#.self_attention.query_key_value.weight", QSF_HF_B("attn_qkv.weight"), 2,
                qsf_hf_rows_group_k, 1),
    QSF_HF_PART("h.#.self_attention.query_key_value.weight", QSF_HF_B("attn_qkv.weight"), 2,
                qsf_hf_rows_group_v, 2),
    QSF_HF_MATRIX("h.#.self_attention.dense", QSF_HF_B("attn_output")),
    QSF_HF_MATRIX("h.#.mlp.dense_h_to_4h", QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX("h.#.mlp.dense_4h_to_h", QSF_HF_B("ffn_down")),
    QSF_HF_IGNORED("h.#.self_attention.rotary_emb.inv_freq"),
    QSF_HF_IGNORED("h.#.self_attention.maybe_rotary.inv_freq"),
    QSF_HF_END,
};
static const QsfHfName *const falcon_tables[] = { falcon_names, NULL };
static const QsfHfMust falcon_must[] = {
    { "alibi", "false" },        { "bias", "false" },      { "multi_query", "true" },
    { "parallel_attn", "true" }, { "activation", "gelu" }, QSF_HF_END,
};

/* --- MPT --- */

static const QsfHfName mpt_names[] = {
    QSF_HF_MATRIX("wte", "token_embd"),
    QSF_HF_MATRIX("wpe", "position_embd"),
    QSF_HF_MATRIX("lm_head", "output"),
    NORM("norm_f", "output_norm"),
    NORM("blocks.#.norm_1", QSF_HF_B("attn_norm")),
    NORM("blocks.#.norm_2", QSF_HF_B("ffn_norm")),
    MATRIX("blocks.#.attn.Wqkv", QSF_HF_B("attn_qkv")),
    MATRIX("blocks.#.attn.out_proj", QSF_HF_B("attn_output")),
    MATRIX("blocks.#.ffn.up_proj", QSF_HF_B("ffn_up")),
    MATRIX("blocks.#.ffn.down_proj", QSF_HF_B("ffn_down")),
    QSF_HF_END,
};
static const QsfHfName *const mpt_tables[] = { mpt_names, NULL };
static const QsfHfMust mpt_must[] = {
    { "expansion_ratio", "4" },
    { "logit_scale", "" },
    { "norm_type", "low_precision_layernorm|layernorm" },
    QSF_HF_END,
};

static int mpt(QsfHfModel *m) {
    const QsfJson *a = qsf_hf_member(m->text, "attn_config");
    double clip = 0, bias = 0;
    if (qsf_json_bool(qsf_hf_member(a, "qk_ln"), false))
        return qsf_hf_bad(m, "attn_config", "has qk_ln, which is not supported");
    if (qsf_hf_member(a, "softmax_scale") != NULL)
        return qsf_hf_bad(m, "attn_config", "has softmax_scale, which is not supported");
    int rc = qsf_hf_real(m, a, "clip_qkv", 0, 0, 1e6, &clip);
    if (rc == QSF_OK && clip > 0) rc = qsf_hf_put_f32(m, "attention.clamp_kqv", clip);
    if (rc == QSF_OK && qsf_json_bool(qsf_hf_member(a, "alibi"), true))
        rc = qsf_hf_real(m, a, "alibi_bias_max", 8, 1e-6, 1e3, &bias);
    return rc == QSF_OK ? qsf_hf_put_f32(m, "attention.max_alibi_bias", bias) : rc;
}

const QsfHfArch qsf_hf_arch_gpt[] = {
    { .name = "GPT2LMHeadModel",
      .gguf = "gpt2",
      .tensors = gpt2_tables,
      .keys = keys,
      .must = gpt2_must,
      .prefixes = transformer,
      .tied = true,
      .ffn_times = 4,
      .n_ctx = 1024 },
    { .name = "GPTBigCodeForCausalLM",
      .gguf = "starcoder",
      .tensors = bigcode_tables,
      .keys = keys,
      .must = bigcode_must,
      .prefixes = transformer,
      .tied = true,
      .kv_heads = 1,
      .ffn_times = 4,
      .n_ctx = 1024 },
    { .name = "GPTNeoXForCausalLM",
      .gguf = "gptneox",
      .tensors = neox_tables,
      .keys = neox_keys,
      .must = gelu_must,
      .prefixes = neox_prefixes,
      .ropes = QSF_HF_ROPE_PLAIN,
      .n_ctx = 2048,
      .rotary = 0.25 },
    { .name = "BloomForCausalLM",
      .gguf = "bloom",
      .tensors = bloom_tables,
      .keys = keys,
      .must = bloom_must,
      .prefixes = transformer,
      .tied = true,
      .ffn_times = 4,
      .n_ctx = 2048 },
    { .name = "FalconForCausalLM",
      .gguf = "falcon",
      .tensors = falcon_tables,
      .keys = keys,
      .must = falcon_must,
      .prefixes = transformer,
      .ropes = QSF_HF_ROPE_PLAIN,
      .tied = true,
      .kv_heads = 1,
      .ffn_times = 4,
      .n_ctx = 2048 },
    { .name = "MPTForCausalLM",
      .gguf = "mpt",
      .tensors = mpt_tables,
      .keys = keys,
      .must = mpt_must,
      .put = mpt,
      .prefixes = transformer,
      .tied = true,
      .ffn_times = 4,
      .n_ctx = 2048 },
    { 0 },
};
