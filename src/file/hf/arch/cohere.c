/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Command R and R7B: attention and FFN in parallel; norms of heads have a row for each of them. Names:
 * huggingface/transformers models/cohere/, models/cohere2/; ggml-org/llama.cpp conversion/command_r.py.
 * Defaults: transformers' configuration files. */
#include "src/file/hf/tables.h"

static const QsfHfName cohere_norms[] = {
    QSF_HF_VECTOR("norm", "output_norm"),
    QSF_HF_VECTOR(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.q_norm"), QSF_HF_B("attn_q_norm")),
    QSF_HF_MATRIX(QSF_HF_L("self_attn.k_norm"), QSF_HF_B("attn_k_norm")),
    QSF_HF_END,
};

static const QsfHfName *const cohere_tables[] = {
    qsf_hf_names_ends, cohere_norms, qsf_hf_names_qk, qsf_hf_names_vo, qsf_hf_names_mlp, NULL,
};

static const QsfHfKey cohere_scale[] = {
    { "logit_scale", "logit_scale", QSF_HF_F32, 0.0625, 1e-6, 1e6 },
    QSF_HF_END,
};

static const QsfHfKey *const cohere_keys[] = { qsf_hf_keys_layer_norm, cohere_scale, NULL };

/* Command R7B: windows except in every fourth layer. */
static int cohere2(QsfHfModel *m) {
    uint32_t window, period;
    int rc = qsf_hf_u32(m, "sliding_window", 4096, &window);
    if (rc == QSF_OK) rc = qsf_hf_u32(m, "sliding_window_pattern|_sliding_window_pattern", 4, &period);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "attention.sliding_window", window);
    if (rc == QSF_OK && period != 4 && qsf_hf_member(m->text, "layer_types") == NULL)
        rc = qsf_hf_put_u32(m, "attention.sliding_window_pattern", period);
    return rc == QSF_OK ? qsf_hf_put_windows(m) : rc;
}

const QsfHfArch qsf_hf_arch_cohere[] = {
    { .name = "CohereForCausalLM",
      .gguf = "command-r",
      .tensors = cohere_tables,
      .keys = cohere_keys,
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPE_PLAIN,
      .tied = true,
      .ctx = "model_max_length|max_position_embeddings" },
    { .name = "Cohere2ForCausalLM",
      .gguf = "cohere2",
      .tensors = cohere_tables,
      .keys = cohere_keys,
      .must = qsf_hf_must_silu,
      .put = cohere2,
      .ropes = QSF_HF_ROPE_PLAIN,
      .tied = true,
      .rotary = 1 },
    QSF_HF_END,
};
