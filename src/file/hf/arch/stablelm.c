/* SPDX-License-Identifier: GPL-3.0-or-later */
/* StableLM. Names: huggingface/transformers models/stablelm/modeling_stablelm.py; ggml-org/llama.cpp
 * conversion/stablelm.py. Defaults: configuration_stablelm.py. */
#include "src/file/hf/tables.h"

/* With norms of queries and keys: a tensor for each head. */
static const QsfHfName stablelm_heads[] = {
    QSF_HF_VECTOR(QSF_HF_L("self_attn.q_layernorm.norms.*"), QSF_HF_B("attn_q_norm")),
    QSF_HF_VECTOR(QSF_HF_L("self_attn.k_layernorm.norms.*"), QSF_HF_B("attn_k_norm")),
    QSF_HF_END,
};

static const QsfHfKey stablelm_residual[] = {
    { "use_parallel_residual", "use_parallel_residual", QSF_HF_BOOL, 0, 0, 0 },
    QSF_HF_END,
};

const QsfHfArch qsf_hf_arch_stablelm[] = {
    { .name = "StableLmForCausalLM",
      .gguf = "stablelm",
      .tensors = QSF_HF_NAMES(qsf_hf_names_ends, qsf_hf_names_layer_norms, qsf_hf_names_qk, qsf_hf_names_vo,
                              qsf_hf_names_mlp, stablelm_heads),
      .keys = QSF_HF_KEYS(qsf_hf_keys_layer_norm, stablelm_residual),
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPE_PLAIN,
      .n_ctx = 4096,
      .rotary = 0.25 },
    QSF_HF_END,
};
