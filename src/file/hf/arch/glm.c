/* SPDX-License-Identifier: GPL-3.0-or-later */
/* GLM 4, with norms before and after the branches, and GLM 4.5 with experts. Names:
 * huggingface/transformers models/glm4/, models/glm4_moe/; ggml-org/llama.cpp conversion/glm.py. Defaults:
 * transformers' configuration files. */
#include "src/file/hf/experts.h"

static const QsfHfName glm4_names[] = {
    QSF_HF_VECTOR(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_VECTOR(QSF_HF_L("post_self_attn_layernorm"), QSF_HF_B("post_attention_norm")),
    QSF_HF_VECTOR(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("ffn_norm")),
    QSF_HF_VECTOR(QSF_HF_L("post_mlp_layernorm"), QSF_HF_B("post_ffw_norm")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.gate_up_proj"), QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.down_proj"), QSF_HF_B("ffn_down")),
    QSF_HF_END,
};

const QsfHfArch qsf_hf_arch_glm[] = {
    { .name = "Glm4ForCausalLM",
      .gguf = "glm4",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_qk, qsf_hf_names_vo, glm4_names),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPE_PLAIN,
      .kv_heads = 2,
      .head_dim = 128,
      .rotary = 0.5 },
    { .name = "Glm4MoeForCausalLM",
      .gguf = "glm4moe",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_vo, qsf_hf_names_norms_post, qsf_hf_names_qk,
                              qsf_hf_names_qk_norms, qsf_hf_names_mlp, qsf_hf_names_experts,
                              qsf_hf_names_stacked, qsf_hf_names_shared_experts, qsf_hf_names_nextn),
      .nextn = QSF_HF_NEXTN_LAYERS,
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .put = qsf_hf_experts_put_sigmoid,
      .ropes = QSF_HF_ROPES_YARN,
      .rotary = 0.5 },
    QSF_HF_END,
};
