/* SPDX-License-Identifier: GPL-3.0-or-later */
/* GPT-2; Starcoder, with one key and value; Starcoder 2, with names like those of Llama. Names:
 * huggingface/transformers models/gpt2/, models/gpt_bigcode/, models/starcoder2/; ggml-org/llama.cpp
 * conversion/gpt2.py, starcoder.py. Defaults: transformers' configuration files. */
#include "src/file/hf/tables.h"

/* --- GPT-2: weights are stored by columns --- */

#define TRANSPOSED(hf, gguf) \
    QSF_HF_HOW(hf ".weight", gguf ".weight", 2, QSF_DERIVE_TRANSPOSE), QSF_HF_BIAS(hf, gguf)

/* GPT-2 and Starcoder: embeddings, head and norms. */
static const QsfHfName gpt2_ends[] = {
    QSF_HF_MATRIX("wte", "token_embd"),
    QSF_HF_MATRIX("wpe", "position_embd"),
    QSF_HF_MATRIX("lm_head", "output"),
    QSF_HF_NORM("ln_f", "output_norm"),
    QSF_HF_NORM("h.#.ln_1", QSF_HF_B("attn_norm")),
    QSF_HF_NORM("h.#.ln_2", QSF_HF_B("ffn_norm")),
    QSF_HF_IGNORED("h.#.attn.bias"), /* the causal mask */
    QSF_HF_END,
};

static const QsfHfName gpt2_names[] = {
    TRANSPOSED("h.#.attn.c_attn", QSF_HF_B("attn_qkv")),
    TRANSPOSED("h.#.attn.c_proj", QSF_HF_B("attn_output")),
    TRANSPOSED("h.#.mlp.c_fc", QSF_HF_B("ffn_up")),
    TRANSPOSED("h.#.mlp.c_proj", QSF_HF_B("ffn_down")),
    QSF_HF_IGNORED("h.#.attn.masked_bias"),
    QSF_HF_END,
};

static const QsfHfMust gpt2_must[] = {
    { "activation_function", "gelu_new|gelu_pytorch_tanh|gelu_fast" },
    { "scale_attn_weights", "true" },
    { "scale_attn_by_inverse_layer_idx", "false" },
    { "add_cross_attention", "false" },
    QSF_HF_END,
};

/* --- Starcoder: weights are stored by rows --- */

static const QsfHfName bigcode_names[] = {
    QSF_HF_LINEAR("h.#.attn.c_attn", QSF_HF_B("attn_qkv")),
    QSF_HF_LINEAR("h.#.attn.c_proj", QSF_HF_B("attn_output")),
    QSF_HF_LINEAR("h.#.mlp.c_fc", QSF_HF_B("ffn_up")),
    QSF_HF_LINEAR("h.#.mlp.c_proj", QSF_HF_B("ffn_down")),
    QSF_HF_END,
};

static const QsfHfMust bigcode_must[] = {
    { "activation_function", "gelu|gelu_pytorch_tanh|gelu_new|gelu_fast" },
    { "scale_attn_weights", "true" },
    { "multi_query", "true" },
    QSF_HF_END,
};

/* --- Starcoder 2 --- */

static const QsfHfName starcoder2_mlp[] = {
    QSF_HF_LINEAR(QSF_HF_L("mlp.c_fc"), QSF_HF_B("ffn_up")),
    QSF_HF_LINEAR(QSF_HF_L("mlp.c_proj"), QSF_HF_B("ffn_down")),
    QSF_HF_END,
};

static const QsfHfMust starcoder2_must[] = {
    { "hidden_act", "gelu_pytorch_tanh|gelu_new" },
    { "norm_type", "layer_norm" },
    { "mlp_type", "default" },
    QSF_HF_END,
};

const QsfHfArch qsf_hf_arch_gpt2_starcoder[] = {
    { .name = "GPT2LMHeadModel",
      .gguf = "gpt2",
      .tensors = QSF_HF_NAMES(gpt2_ends, gpt2_names),
      .keys = QSF_HF_KEYS(qsf_hf_keys_layer_norm),
      .must = gpt2_must,
      .prefixes = qsf_hf_transformer,
      .tied = true,
      .ffn_times = 4,
      .n_ctx = 1024 },
    { .name = "GPTBigCodeForCausalLM",
      .gguf = "starcoder",
      .tensors = QSF_HF_NAMES(gpt2_ends, bigcode_names),
      .keys = QSF_HF_KEYS(qsf_hf_keys_layer_norm),
      .must = bigcode_must,
      .prefixes = qsf_hf_transformer,
      .tied = true,
      .kv_heads = 1,
      .ffn_times = 4,
      .n_ctx = 1024 },
    { .name = "Starcoder2ForCausalLM",
      .gguf = "starcoder2",
      .tensors = QSF_HF_NAMES(qsf_hf_names_ends, qsf_hf_names_layer_norms, qsf_hf_names_qk, qsf_hf_names_vo,
                              starcoder2_mlp),
      .keys = QSF_HF_KEYS(qsf_hf_keys_layer_norm),
      .must = starcoder2_must,
      .ropes = QSF_HF_ROPE_PLAIN,
      .window = QSF_HF_WINDOW_LIMITS,
      .tied = true,
      .kv_heads = 2 },
    QSF_HF_END,
};
