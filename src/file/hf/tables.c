/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tables that architectures share. Names: huggingface/transformers models/NAME/modeling_NAME.py, and
 * the conversion of older names, conversion_mapping.py; ggml-org/llama.cpp gguf-py/gguf/tensor_mapping.py.
 * Defaults: transformers' configuration files. */
#include "src/file/hf/experts.h"

/* --- embedding, norms, attention, feed-forward networks --- */

const QsfHfName qsf_hf_names_ends[] = {
    QSF_HF_MATRIX("embed_tokens", "token_embd"),
    QSF_HF_MATRIX("lm_head", "output"),
    QSF_HF_IGNORED("rotary_emb.inv_freq"), /* computed from the config by every reader */
    QSF_HF_IGNORED(QSF_HF_L("self_attn.rotary_emb.inv_freq")),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_model[] = {
    QSF_HF_MATRIX("embed_tokens", "token_embd"),
    QSF_HF_VECTOR("norm", "output_norm"),
    QSF_HF_MATRIX("lm_head", "output"),
    QSF_HF_IGNORED("rotary_emb.inv_freq"),
    QSF_HF_IGNORED(QSF_HF_L("self_attn.rotary_emb.inv_freq")),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_norms[] = {
    QSF_HF_VECTOR(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_VECTOR(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("ffn_norm")),
    QSF_HF_END,
};

/* The second norm has another name in GGUF. */
const QsfHfName qsf_hf_names_norms_post[] = {
    QSF_HF_VECTOR(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_VECTOR(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("post_attention_norm")),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_layer_norms[] = {
    QSF_HF_NORM("norm", "output_norm"),
    QSF_HF_NORM(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_NORM(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("ffn_norm")),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_qk_pairs[] = {
    QSF_HF_ROWS(QSF_HF_L("self_attn.q_proj.weight"), QSF_HF_B("attn_q.weight"), 2, qsf_hf_rows_q),
    QSF_HF_ROWS(QSF_HF_L("self_attn.k_proj.weight"), QSF_HF_B("attn_k.weight"), 2, qsf_hf_rows_k),
    QSF_HF_ROWS(QSF_HF_L("self_attn.q_proj.bias"), QSF_HF_B("attn_q.bias"), 1, qsf_hf_rows_q),
    QSF_HF_ROWS(QSF_HF_L("self_attn.k_proj.bias"), QSF_HF_B("attn_k.bias"), 1, qsf_hf_rows_k),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_qk[] = {
    QSF_HF_MATRIX(QSF_HF_L("self_attn.q_proj"), QSF_HF_B("attn_q")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.k_proj"), QSF_HF_B("attn_k")),
    QSF_HF_BIAS(QSF_HF_L("self_attn.q_proj"), QSF_HF_B("attn_q")),
    QSF_HF_BIAS(QSF_HF_L("self_attn.k_proj"), QSF_HF_B("attn_k")),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_vo[] = {
    QSF_HF_LINEAR(QSF_HF_L("self_attn.v_proj"), QSF_HF_B("attn_v")),
    QSF_HF_LINEAR(QSF_HF_L("self_attn.o_proj"), QSF_HF_B("attn_output")),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_mlp[] = {
    QSF_HF_MATRIX(QSF_HF_L("mlp.gate_proj"), QSF_HF_B("ffn_gate")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.up_proj"), QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.down_proj"), QSF_HF_B("ffn_down")),
    QSF_HF_BIAS(QSF_HF_L("mlp.gate_proj"), QSF_HF_B("ffn_gate")),
    QSF_HF_BIAS(QSF_HF_L("mlp.up_proj"), QSF_HF_B("ffn_up")),
    QSF_HF_BIAS(QSF_HF_L("mlp.down_proj"), QSF_HF_B("ffn_down")),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_qk_norms[] = {
    QSF_HF_VECTOR(QSF_HF_L("self_attn.q_norm"), QSF_HF_B("attn_q_norm")),
    QSF_HF_VECTOR(QSF_HF_L("self_attn.k_norm"), QSF_HF_B("attn_k_norm")),
    QSF_HF_END,
};

/* --- routers, experts, shared experts --- */

const QsfHfName qsf_hf_names_experts[] = {
    QSF_HF_HOW(QSF_HF_L("mlp.gate.weight"), QSF_HF_B("ffn_gate_inp.weight"), 2, QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("mlp.gate.e_score_correction_bias"), QSF_HF_B("exp_probs_b.bias"), 1, QSF_DERIVE_F32),
    QSF_HF_MATRIX(QSF_HF_L("mlp.experts.*.gate_proj"), QSF_HF_B("ffn_gate_exps")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.experts.*.up_proj"), QSF_HF_B("ffn_up_exps")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.experts.*.down_proj"), QSF_HF_B("ffn_down_exps")),
    QSF_HF_END,
};

/* Newer files: all experts in one tensor, gate above up. */
const QsfHfName qsf_hf_names_stacked[] = {
    QSF_HF_ROWS(QSF_HF_L("mlp.experts.gate_up_proj"), QSF_HF_B("ffn_gate_exps.weight"), 3, qsf_hf_rows_gate),
    QSF_HF_ROWS(QSF_HF_L("mlp.experts.gate_up_proj"), QSF_HF_B("ffn_up_exps.weight"), 3, qsf_hf_rows_up),
    QSF_HF_HOW(QSF_HF_L("mlp.experts.down_proj"), QSF_HF_B("ffn_down_exps.weight"), 3, QSF_DERIVE_COPY),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_w123[] = {
    QSF_HF_HOW(QSF_HF_L("block_sparse_moe.gate.weight"), QSF_HF_B("ffn_gate_inp.weight"), 2, QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("block_sparse_moe.e_score_correction_bias"), QSF_HF_B("exp_probs_b.bias"), 1,
               QSF_DERIVE_F32),
    QSF_HF_MATRIX(QSF_HF_L("block_sparse_moe.experts.*.w1"), QSF_HF_B("ffn_gate_exps")),
    QSF_HF_MATRIX(QSF_HF_L("block_sparse_moe.experts.*.w3"), QSF_HF_B("ffn_up_exps")),
    QSF_HF_MATRIX(QSF_HF_L("block_sparse_moe.experts.*.w2"), QSF_HF_B("ffn_down_exps")),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_shared_expert[] = {
    QSF_HF_MATRIX(QSF_HF_L("mlp.shared_expert.gate_proj"), QSF_HF_B("ffn_gate_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.shared_expert.up_proj"), QSF_HF_B("ffn_up_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.shared_expert.down_proj"), QSF_HF_B("ffn_down_shexp")),
    { "layers.#.mlp.shared_expert_gate.weight", "blk.#.ffn_gate_inp_shexp.weight", 2, QSF_DERIVE_F32, NULL, 0,
      qsf_hf_shape_vector },
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_nextn[] = {
    QSF_HF_MATRIX(QSF_HF_L("eh_proj"), QSF_HF_B("nextn.eh_proj")),
    QSF_HF_VECTOR(QSF_HF_L("enorm"), QSF_HF_B("nextn.enorm")),
    QSF_HF_VECTOR(QSF_HF_L("hnorm"), QSF_HF_B("nextn.hnorm")),
    QSF_HF_MATRIX(QSF_HF_L("embed_tokens"), QSF_HF_B("nextn.embed_tokens")),
    QSF_HF_VECTOR(QSF_HF_L("shared_head.norm"), QSF_HF_B("nextn.shared_head_norm")),
    QSF_HF_MATRIX(QSF_HF_L("shared_head.head"), QSF_HF_B("nextn.shared_head_head")),
    QSF_HF_END,
};

const QsfHfName qsf_hf_names_shared_experts[] = {
    QSF_HF_MATRIX(QSF_HF_L("mlp.shared_experts.gate_proj"), QSF_HF_B("ffn_gate_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.shared_experts.up_proj"), QSF_HF_B("ffn_up_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.shared_experts.down_proj"), QSF_HF_B("ffn_down_shexp")),
    QSF_HF_END,
};

/* --- lists for whole models --- */

const QsfHfName *const qsf_hf_like_llama[] = {
    qsf_hf_names_model, qsf_hf_names_norms, qsf_hf_names_qk_pairs, qsf_hf_names_vo, qsf_hf_names_mlp, NULL,
};

const QsfHfName *const qsf_hf_like_qwen[] = {
    qsf_hf_names_model, qsf_hf_names_norms, qsf_hf_names_qk, qsf_hf_names_vo, qsf_hf_names_mlp, NULL,
};

const QsfHfName *const qsf_hf_like_qwen3[] = {
    qsf_hf_names_model,
    qsf_hf_names_norms,
    qsf_hf_names_qk,
    qsf_hf_names_vo,
    qsf_hf_names_mlp,
    qsf_hf_names_qk_norms,
    NULL,
};

static const QsfHfName norms_after[] = {
    QSF_HF_VECTOR(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("post_attention_norm")),
    QSF_HF_VECTOR(QSF_HF_L("post_feedforward_layernorm"), QSF_HF_B("post_ffw_norm")),
    QSF_HF_END,
};
const QsfHfName *const qsf_hf_norms_after[] = {
    qsf_hf_names_model,    norms_after, qsf_hf_names_qk, qsf_hf_names_vo, qsf_hf_names_mlp,
    qsf_hf_names_qk_norms, NULL,
};

/* --- settings --- */

const QsfHfKey qsf_hf_keys_rms[] = {
    { "rms_norm_eps|norm_eps", "attention.layer_norm_rms_epsilon", QSF_HF_F32, 1e-6, 0, 1 },
    QSF_HF_END,
};

const QsfHfKey qsf_hf_keys_layer_norm[] = {
    { "layer_norm_eps|layer_norm_epsilon|norm_epsilon|norm_eps", "attention.layer_norm_epsilon", QSF_HF_F32,
      1e-5, 0, 1 },
    QSF_HF_END,
};

const QsfHfKey qsf_hf_keys_shared_width[] = {
    { "shared_expert_intermediate_size|shared_intermediate_size", "expert_shared_feed_forward_length",
      QSF_HF_U32, QSF_HF_ABSENT, 0, QSF_HF_NUMBER },
    QSF_HF_END,
};

const QsfHfMust qsf_hf_must_silu[] = {
    { "hidden_act|hidden_activation", "silu|swish" },
    QSF_HF_END,
};

/* --- prefixes --- */

const char *const qsf_hf_transformer[] = { "transformer.", NULL };
const char *const qsf_hf_vision_prefixes[] = { "language_model.model.", "model.language_model.",
                                               "language_model.", "model.", NULL };

const char *const qsf_hf_vision_left_out[] = { "vision_tower.",
                                               "model.vision_tower.",
                                               "multi_modal_projector.",
                                               "model.multi_modal_projector.",
                                               "vision_encoder.",
                                               "vision_language_adapter.",
                                               "visual.",
                                               "model.visual.",
                                               NULL };
