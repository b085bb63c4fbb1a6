/* SPDX-License-Identifier: GPL-3.0-or-later */
/* OLMo, OLMo 2 and 3, OLMoE. Names: huggingface/transformers models/NAME/modeling_NAME.py; ggml-org/llama.cpp
 * conversion/olmo.py. Defaults: transformers' configuration files. */
#include "src/file/hf/experts.h"

/* --- OLMo: norms without weights; its epsilon is fixed --- */

static const QsfHfKey olmo_numbers[] = {
    { "clip_qkv", "attention.clamp_kqv", QSF_HF_F32, QSF_HF_ABSENT, 0, 1e6 },
    { "layer_norm_eps", "attention.layer_norm_epsilon", QSF_HF_F32, 1e-5, 0, 1 },
    QSF_HF_END,
};

/* --- OLMo 2 and 3 --- */

/* Windows except in every fourth layer. */
static int olmo3(QsfHfModel *m) { return qsf_hf_put_window(m, 4096); }

const QsfHfArch qsf_hf_arch_olmo[] = {
    { .name = "OlmoForCausalLM",
      .gguf = "olmo",
      .tensors = QSF_HF_NAMES(qsf_hf_names_ends, qsf_hf_names_qk_pairs, qsf_hf_names_vo, qsf_hf_names_mlp),
      .keys = QSF_HF_KEYS(olmo_numbers),
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPES_USUAL },
    { .name = "Olmo2ForCausalLM",
      .gguf = "olmo2",
      .tensors = qsf_hf_norms_after,
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPES_USUAL },
    { .name = "Olmo3ForCausalLM",
      .gguf = "olmo2",
      .tensors = qsf_hf_norms_after,
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .put = olmo3,
      .ropes = QSF_HF_ROPES_USUAL },
    { .name = "OlmoeForCausalLM",
      .gguf = "olmoe",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_vo, qsf_hf_names_norms, qsf_hf_names_qk,
                              qsf_hf_names_qk_norms, qsf_hf_names_experts, qsf_hf_names_stacked),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .put = qsf_hf_experts_put_undivided,
      .ropes = QSF_HF_ROPES_YARN },
    QSF_HF_END,
};
