/* SPDX-License-Identifier: GPL-3.0-or-later */
/* MiniMax M2. Names: huggingface/transformers models/minimax_m2/; ggml-org/llama.cpp
 * conversion/minimax.py. Defaults: configuration_minimax_m2.py. */
#include "src/file/hf/experts.h"

static const QsfHfMust must_minimax[] = {
    { "hidden_act", "silu" },
    { "scoring_func", "sigmoid" },
    { "qk_norm_type", "per_layer" },
    { "use_qk_norm", "true" },
    QSF_HF_END,
};

static int put_minimax(QsfHfModel *m) {
    int rc = qsf_hf_experts_put(m);
    return rc == QSF_OK ? qsf_hf_put_u32(m, "expert_feed_forward_length", m->ffn) : rc;
}

const QsfHfArch qsf_hf_arch_minimax[] = {
    { .name = "MiniMaxM2ForCausalLM",
      .gguf = "minimax-m2",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_vo, qsf_hf_names_norms, qsf_hf_names_qk,
                              qsf_hf_names_qk_norms, qsf_hf_names_w123),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = must_minimax,
      .put = put_minimax,
      .ropes = QSF_HF_ROPE_PLAIN,
      .rotary = 1,
      .rope_base = 5e6 },
    QSF_HF_END,
};
