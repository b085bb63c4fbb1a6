/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Qwen 2 and 3, also with experts or a vision tower. Names: huggingface/transformers
 * models/NAME/modeling_NAME.py; ggml-org/llama.cpp conversion/qwen.py. Defaults: transformers'
 * configuration files. */
#include "src/file/hf/experts.h"

/* All experts in one tensor, with columns for gate and up: x . W instead of W . x. */
static const QsfHfName names_stacked_t[] = {
    { QSF_HF_L("mlp.experts.gate_up_proj"), QSF_HF_B("ffn_gate_exps.weight"), 3, QSF_DERIVE_TRANSPOSE,
      qsf_hf_rows_gate, 0, NULL },
    { QSF_HF_L("mlp.experts.gate_up_proj"), QSF_HF_B("ffn_up_exps.weight"), 3, QSF_DERIVE_TRANSPOSE,
      qsf_hf_rows_up, 0, NULL },
    QSF_HF_HOW(QSF_HF_L("mlp.experts.down_proj"), QSF_HF_B("ffn_down_exps.weight"), 3, QSF_DERIVE_TRANSPOSE),
    QSF_HF_END,
};

#define QWEN2VL                                                                                       \
    .gguf = "qwen2vl", .tensors = qsf_hf_like_qwen, .keys = QSF_HF_KEYS(qsf_hf_keys_rms),             \
    .must = qsf_hf_must_silu, .prefixes = qsf_hf_vision_prefixes, .left_out = qsf_hf_vision_left_out, \
    .ropes = QSF_HF_ROPES_USUAL | QSF_HF_ROPE_SECTIONS, .window = QSF_HF_WINDOW_SWITCH

const QsfHfArch qsf_hf_arch_qwen[] = {
    { .name = "Qwen2ForCausalLM",
      .gguf = "qwen2",
      .tensors = qsf_hf_like_qwen,
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPES_USUAL,
      .window = QSF_HF_WINDOW_SWITCH },
    { .name = "Qwen3ForCausalLM",
      .gguf = "qwen3",
      .tensors = qsf_hf_like_qwen3,
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPES_USUAL,
      .window = QSF_HF_WINDOW_SWITCH,
      .head_dim = 128 },
    { .name = "Qwen2VLForConditionalGeneration", QWEN2VL },
    { .name = "Qwen2_5_VLForConditionalGeneration", QWEN2VL },
    { .name = "Qwen3VLForConditionalGeneration",
      .gguf = "qwen3vl",
      .tensors = qsf_hf_like_qwen3,
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .prefixes = qsf_hf_vision_prefixes,
      .left_out = qsf_hf_vision_left_out,
      .ropes = QSF_HF_ROPES_USUAL | QSF_HF_ROPE_SECTIONS,
      .head_dim = 128,
      .rope_base = 5e6 },
    { .name = "Qwen2MoeForCausalLM",
      .gguf = "qwen2moe",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_vo, qsf_hf_names_norms, qsf_hf_names_qk,
                              qsf_hf_names_experts, qsf_hf_names_stacked, qsf_hf_names_shared_expert),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms, qsf_hf_keys_shared_width),
      .must = qsf_hf_must_silu,
      .put = qsf_hf_experts_put_undivided,
      .ropes = QSF_HF_ROPES_YARN,
      .window = QSF_HF_WINDOW_SWITCH },
    { .name = "Qwen3MoeForCausalLM",
      .gguf = "qwen3moe",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_vo, qsf_hf_names_norms, qsf_hf_names_qk,
                              qsf_hf_names_qk_norms, qsf_hf_names_experts, qsf_hf_names_stacked),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .put = qsf_hf_experts_put_divided,
      .ropes = QSF_HF_ROPES_YARN,
      .window = QSF_HF_WINDOW_SWITCH },
    { .name = "Qwen3VLMoeForConditionalGeneration",
      .gguf = "qwen3vlmoe",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_vo, qsf_hf_names_norms, qsf_hf_names_qk,
                              qsf_hf_names_qk_norms, qsf_hf_names_experts, names_stacked_t),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .put = qsf_hf_experts_put_divided,
      .prefixes = qsf_hf_vision_prefixes,
      .left_out = qsf_hf_vision_left_out,
      .ropes = QSF_HF_ROPES_YARN,
      .rope_base = 5e6 },
    QSF_HF_END,
};
