/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Llama and Mistral. Names: huggingface/transformers models/llama/modeling_llama.py,
 * models/mistral/modeling_mistral.py; ggml-org/llama.cpp gguf-py/gguf/tensor_mapping.py. Permuted rows: its
 * conversion/llama.py. Defaults: transformers' configuration files. */
#include "src/format/hf_tables.h"

const QsfHfName qsf_hf_names_model[] = {
    { "embed_tokens.weight", "token_embd.weight", 2, 0, NULL, 0, NULL },
    { "norm.weight", "output_norm.weight", 1, 0, NULL, 0, NULL },
    { "lm_head.weight", "output.weight", 2, 0, NULL, 0, NULL },
    { "rotary_emb.inv_freq", NULL, 1, 0, NULL, 0, NULL }, /* computed from the config by every reader */
    { 0 },
};

const QsfHfName qsf_hf_names_norms[] = {
    { "layers.#.input_layernorm.weight", "blk.#.attn_norm.weight", 1, 0, NULL, 0, NULL },
    { "layers.#.post_attention_layernorm.weight", "blk.#.ffn_norm.weight", 1, 0, NULL, 0, NULL },
    { "layers.#.self_attn.rotary_emb.inv_freq", NULL, 1, 0, NULL, 0, NULL },
    { 0 },
};

const QsfHfName qsf_hf_names_qk_pairs[] = {
    { "layers.#.self_attn.q_proj.weight", "blk.#.attn_q.weight", 2, 0, qsf_hf_rows_q, 0, NULL },
    { "layers.#.self_attn.k_proj.weight", "blk.#.attn_k.weight", 2, 0, qsf_hf_rows_k, 0, NULL },
    { "layers.#.self_attn.q_proj.bias", "blk.#.attn_q.bias", 1, 0, qsf_hf_rows_q, 0, NULL },
    { "layers.#.self_attn.k_proj.bias", "blk.#.attn_k.bias", 1, 0, qsf_hf_rows_k, 0, NULL },
    { 0 },
};

const QsfHfName qsf_hf_names_qk[] = {
    { "layers.#.self_attn.q_proj.weight", "blk.#.attn_q.weight", 2, 0, NULL, 0, NULL },
    { "layers.#.self_attn.k_proj.weight", "blk.#.attn_k.weight", 2, 0, NULL, 0, NULL },
    { "layers.#.self_attn.q_proj.bias", "blk.#.attn_q.bias", 1, 0, NULL, 0, NULL },
    { "layers.#.self_attn.k_proj.bias", "blk.#.attn_k.bias", 1, 0, NULL, 0, NULL },
    { 0 },
};

const QsfHfName qsf_hf_names_vo[] = {
    { "layers.#.self_attn.v_proj.weight", "blk.#.attn_v.weight", 2, 0, NULL, 0, NULL },
    { "layers.#.self_attn.v_proj.bias", "blk.#.attn_v.bias", 1, 0, NULL, 0, NULL },
    { "layers.#.self_attn.o_proj.weight", "blk.#.attn_output.weight", 2, 0, NULL, 0, NULL },
    { "layers.#.self_attn.o_proj.bias", "blk.#.attn_output.bias", 1, 0, NULL, 0, NULL },
    { 0 },
};

const QsfHfName qsf_hf_names_mlp[] = {
    { "layers.#.mlp.gate_proj.weight", "blk.#.ffn_gate.weight", 2, 0, NULL, 0, NULL },
    { "layers.#.mlp.up_proj.weight", "blk.#.ffn_up.weight", 2, 0, NULL, 0, NULL },
    { "layers.#.mlp.down_proj.weight", "blk.#.ffn_down.weight", 2, 0, NULL, 0, NULL },
    { "layers.#.mlp.gate_proj.bias", "blk.#.ffn_gate.bias", 1, 0, NULL, 0, NULL },
    { "layers.#.mlp.up_proj.bias", "blk.#.ffn_up.bias", 1, 0, NULL, 0, NULL },
    { "layers.#.mlp.down_proj.bias", "blk.#.ffn_down.bias", 1, 0, NULL, 0, NULL },
    { 0 },
};

const QsfHfKey qsf_hf_keys_rms[] = {
    { "rms_norm_eps|norm_eps", "attention.layer_norm_rms_epsilon", QSF_HF_F32, 1e-6, 0, 1 },
    { 0 },
};

const QsfHfMust qsf_hf_must_silu[] = {
    { "hidden_act|hidden_activation", "silu|swish" },
    { 0 },
};

static const QsfHfName *const names[] = {
    qsf_hf_names_model, qsf_hf_names_norms, qsf_hf_names_qk_pairs, qsf_hf_names_vo, qsf_hf_names_mlp, NULL,
};
static const QsfHfKey *const keys[] = { qsf_hf_keys_rms, NULL };

#define ROPES (QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_LINEAR | QSF_HF_ROPE_LLAMA3 | QSF_HF_ROPE_YARN)

const QsfHfArch qsf_hf_arch_llama[] = {
    { .name = "LlamaForCausalLM",
      .gguf = "llama",
      .tensors = names,
      .keys = keys,
      .must = qsf_hf_must_silu,
      .ropes = ROPES,
      .window = QSF_HF_WINDOW_LIMITS },
    { .name = "MistralForCausalLM",
      .gguf = "llama",
      .tensors = names,
      .keys = keys,
      .must = qsf_hf_must_silu,
      .ropes = ROPES,
      .window = QSF_HF_WINDOW_LIMITS,
      .kv_heads = 8 },
    { 0 },
};
