/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Phi 1 to 4, Phi 3.5 MoE. Names: huggingface/transformers models/phi/, models/phi3/, models/phimoe/;
 * ggml-org/llama.cpp conversion/phi.py. Defaults: transformers' configuration files. */
#include "src/file/hf/experts.h"

/* --- Phi 1, 1.5 and 2 --- */

static const QsfHfName phi2_names[] = {
    QSF_HF_BIAS("lm_head", "output"),
    QSF_HF_NORM("final_layernorm", "output_norm"),
    QSF_HF_NORM(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_LINEAR(QSF_HF_L("self_attn.v_proj"), QSF_HF_B("attn_v")),
    QSF_HF_LINEAR(QSF_HF_L("self_attn.dense"), QSF_HF_B("attn_output")),
    QSF_HF_LINEAR(QSF_HF_L("mlp.fc1"), QSF_HF_B("ffn_up")),
    QSF_HF_LINEAR(QSF_HF_L("mlp.fc2"), QSF_HF_B("ffn_down")),
    QSF_HF_END,
};

static const QsfHfMust phi2_must[] = {
    { "hidden_act", "gelu_new|gelu_pytorch_tanh|gelu_fast" },
    { "qk_layernorm", "false" },
    QSF_HF_END,
};

/* --- Phi 3 and 4: fused projections; factors for long contexts --- */

static const QsfHfName phi3_names[] = {
    QSF_HF_MATRIX(QSF_HF_L("self_attn.qkv_proj"), QSF_HF_B("attn_qkv")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.o_proj"), QSF_HF_B("attn_output")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.gate_up_proj"), QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.down_proj"), QSF_HF_B("ffn_down")),
    QSF_HF_END,
};

static const QsfHfMust phi3_must[] = {
    { "hidden_act", "silu|swish" },
    { "attention_bias", "false" },
    QSF_HF_END,
};

/* --- with experts --- */

static const QsfHfName names_phimoe[] = {
    QSF_HF_BIAS("norm", "output_norm"),
    QSF_HF_BIAS("lm_head", "output"),
    QSF_HF_BIAS(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_BIAS(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("ffn_norm")),
    QSF_HF_END,
};

#define PHIMOE                                                                                     \
    .gguf = "phimoe",                                                                              \
    .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_vo, qsf_hf_names_norms, names_phimoe, \
                            qsf_hf_names_qk, qsf_hf_names_w123),                                   \
    .keys = QSF_HF_KEYS(qsf_hf_keys_rms), .must = qsf_hf_must_silu, .put = qsf_hf_experts_put,     \
    .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_LONG, .window = QSF_HF_WINDOW_LIMITS

const QsfHfArch qsf_hf_arch_phi[] = {
    { .name = "PhiForCausalLM",
      .gguf = "phi2",
      .tensors = QSF_HF_NAMES(qsf_hf_names_ends, qsf_hf_names_qk, phi2_names),
      .keys = QSF_HF_KEYS(qsf_hf_keys_layer_norm),
      .must = phi2_must,
      .ropes = QSF_HF_ROPE_PLAIN,
      .n_ctx = 2048,
      .rotary = 0.5 },
    { .name = "Phi3ForCausalLM",
      .gguf = "phi3",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_norms, phi3_names),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = phi3_must,
      .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_LONG,
      .window = QSF_HF_WINDOW_WRITTEN,
      .rotary = 1 },
    { .name = "PhimoeForCausalLM", PHIMOE },
    { .name = "PhiMoEForCausalLM", PHIMOE },
    QSF_HF_END,
};
