/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bloom and GPT-NeoX: queries, keys and values of each head together. Names: huggingface/transformers
 * models/NAME/modeling_NAME.py; ggml-org/llama.cpp conversion/gptneox.py, bloom.py. Defaults:
 * transformers' configuration files. */
#include "src/file/hf/tables.h"

#define BY_HEAD(hf, suffix, n)                                                         \
    QSF_HF_PART(hf suffix, QSF_HF_B("attn_qkv" suffix), n, qsf_hf_rows_head_q, 0),     \
        QSF_HF_PART(hf suffix, QSF_HF_B("attn_qkv" suffix), n, qsf_hf_rows_head_k, 1), \
        QSF_HF_PART(hf suffix, QSF_HF_B("attn_qkv" suffix), n, qsf_hf_rows_head_v, 2)

static const QsfHfName neox_names[] = {
    QSF_HF_MATRIX("embed_in", "token_embd"),
    QSF_HF_MATRIX("embed_out", "output"),
    QSF_HF_NORM("final_layer_norm", "output_norm"),
    QSF_HF_NORM(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_NORM(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("ffn_norm")),
    BY_HEAD(QSF_HF_L("attention.query_key_value"), ".weight", 2),
    BY_HEAD(QSF_HF_L("attention.query_key_value"), ".bias", 1),
    QSF_HF_LINEAR(QSF_HF_L("attention.dense"), QSF_HF_B("attn_output")),
    QSF_HF_LINEAR(QSF_HF_L("mlp.dense_h_to_4h"), QSF_HF_B("ffn_up")),
    QSF_HF_LINEAR(QSF_HF_L("mlp.dense_4h_to_h"), QSF_HF_B("ffn_down")),
    QSF_HF_IGNORED(QSF_HF_L("attention.bias")),
    QSF_HF_IGNORED(QSF_HF_L("attention.masked_bias")),
    QSF_HF_IGNORED(QSF_HF_L("attention.rotary_emb.inv_freq")),
    QSF_HF_END,
};

static const QsfHfKey neox_residual[] = {
    { "use_parallel_residual", "use_parallel_residual", QSF_HF_BOOL, 1, 0, 0 },
    QSF_HF_END,
};

/* The engine's GELU is the tanh form for all of these models, as in ggml-org/llama.cpp. */
static const QsfHfMust gelu_must[] = { { "hidden_act", "gelu|gelu_new|gelu_fast|gelu_pytorch_tanh" },
                                       QSF_HF_END };

static const char *const neox_prefixes[] = { "gpt_neox.", NULL };

static const QsfHfName bloom_names[] = {
    QSF_HF_MATRIX("word_embeddings", "token_embd"),
    QSF_HF_NORM("word_embeddings_layernorm", "token_embd_norm"),
    QSF_HF_MATRIX("lm_head", "output"),
    QSF_HF_NORM("ln_f", "output_norm"),
    QSF_HF_NORM("h.#.input_layernorm", QSF_HF_B("attn_norm")),
    QSF_HF_NORM("h.#.post_attention_layernorm", QSF_HF_B("ffn_norm")),
    BY_HEAD("h.#.self_attention.query_key_value", ".weight", 2),
    BY_HEAD("h.#.self_attention.query_key_value", ".bias", 1),
    QSF_HF_LINEAR("h.#.self_attention.dense", QSF_HF_B("attn_output")),
    QSF_HF_LINEAR("h.#.mlp.dense_h_to_4h", QSF_HF_B("ffn_up")),
    QSF_HF_LINEAR("h.#.mlp.dense_4h_to_h", QSF_HF_B("ffn_down")),
    QSF_HF_END,
};

static const QsfHfMust bloom_must[] = { { "apply_residual_connection_post_layernorm", "false" }, QSF_HF_END };

const QsfHfArch qsf_hf_arch_bloom_gpt_neox[] = {
    { .name = "GPTNeoXForCausalLM",
      .gguf = "gptneox",
      .tensors = QSF_HF_NAMES(neox_names),
      .keys = QSF_HF_KEYS(qsf_hf_keys_layer_norm, neox_residual),
      .must = gelu_must,
      .prefixes = neox_prefixes,
      .ropes = QSF_HF_ROPE_PLAIN,
      .n_ctx = 2048,
      .rotary = 0.25 },
    { .name = "BloomForCausalLM",
      .gguf = "bloom",
      .tensors = QSF_HF_NAMES(bloom_names),
      .keys = QSF_HF_KEYS(qsf_hf_keys_layer_norm),
      .must = bloom_must,
      .prefixes = qsf_hf_transformer,
      .tied = true,
      .ffn_times = 4,
      .n_ctx = 2048 },
    QSF_HF_END,
};
