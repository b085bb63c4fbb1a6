/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Mistral, Mixtral, Mistral 3, Ministral 3, and Mistral 4 with latent attention. Names:
 * huggingface/transformers models/NAME/modeling_NAME.py; ggml-org/llama.cpp conversion/llama.py,
 * mistral3.py. Defaults: transformers' configuration files. */
#include <math.h>

#include "src/file/hf/latent.h"

/* Ministral 3: queries are scaled by their position. */
static const QsfHfMust mistral3_must[] = {
    { "hidden_act", "silu|swish" },
    { "model_type", "mistral|ministral3" },
    QSF_HF_END,
};

static int mistral3(QsfHfModel *m) {
    const QsfJson *rope = qsf_hf_member(m->text, "rope_parameters|rope_scaling");
    double mscale, beta;
    if (qsf_hf_is(m, &(const QsfHfMust){ "model_type", "mistral" })) return QSF_OK;
    int rc = qsf_hf_real(m, rope, "mscale_all_dim", (double)NAN, 0, 1e6, &mscale);
    if (rc == QSF_OK) rc = qsf_hf_real(m, rope, "llama_4_scaling_beta", (double)NAN, 0, 1e6, &beta);
    if (rc == QSF_OK) rc = qsf_hf_put_f32(m, "rope.scaling.yarn_log_multiplier", mscale);
    return rc == QSF_OK ? qsf_hf_put_f32(m, "attention.temperature_scale", beta) : rc;
}

#define MISTRAL_3                                                                                        \
    .gguf = "mistral3", .tensors = qsf_hf_like_llama, .keys = QSF_HF_KEYS(qsf_hf_keys_rms),              \
    .must = mistral3_must, .put = mistral3, .ropes = QSF_HF_ROPES_USUAL, .window = QSF_HF_WINDOW_LIMITS, \
    .kv_heads = 8

/* Mistral 3 and 4 have the same name. */
static const QsfHfMust is_mistral4[] = { { "model_type", "mistral4" }, QSF_HF_END };

/* Queries are scaled by their position. */
static int put_mistral4(QsfHfModel *m) {
    const QsfJson *rope = qsf_hf_member(m->text, "rope_parameters|rope_scaling");
    double beta;
    int rc = qsf_hf_deepseek_put_latent(m, "softmax");
    if (rc != QSF_OK || qsf_hf_member(rope, "llama_4_scaling_beta") == NULL) return rc;
    rc = qsf_hf_real(m, rope, "llama_4_scaling_beta", 0, 0, 1e3, &beta);
    if (rc == QSF_OK) rc = qsf_hf_put_f32(m, "attention.temperature_scale", beta);
    if (rc != QSF_OK || m->rope != QSF_HF_ROPE_YARN) return rc;
    return qsf_hf_put_u32(m, "attention.temperature_length", (uint32_t)m->rope_ctx);
}

#define MISTRAL_4                                                                                            \
    .gguf = "mistral4",                                                                                      \
    .tensors = QSF_HF_LATENT_NAMES(qsf_hf_names_experts, qsf_hf_names_stacked, qsf_hf_names_shared_experts), \
    .keys = QSF_HF_KEYS(qsf_hf_keys_rms, qsf_hf_keys_latent), .must = qsf_hf_must_deepseek,                  \
    .put = put_mistral4, .prefixes = qsf_hf_vision_prefixes, .left_out = qsf_hf_vision_left_out,             \
    .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_YARN, .rotated = "qk_rope_head_dim", .own_kv_heads = true

const QsfHfArch qsf_hf_arch_mistral[] = {
    { .name = "MistralForCausalLM",
      .gguf = "llama",
      .tensors = qsf_hf_like_llama,
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPES_USUAL,
      .window = QSF_HF_WINDOW_LIMITS,
      .kv_heads = 8 },
    { .name = "MixtralForCausalLM",
      .gguf = "llama",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_vo, qsf_hf_names_norms, qsf_hf_names_qk_pairs,
                              qsf_hf_names_w123),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .put = qsf_hf_experts_put,
      .ropes = QSF_HF_ROPES_YARN,
      .window = QSF_HF_WINDOW_LIMITS,
      .kv_heads = 8,
      .rope_base = 1e6 },
    { .name = "Mistral3ForConditionalGeneration", .when = is_mistral4, MISTRAL_4 },
    { .name = "Mistral3ForConditionalGeneration",
      .prefixes = qsf_hf_vision_prefixes,
      .left_out = qsf_hf_vision_left_out,
      MISTRAL_3 },
    { .name = "Ministral3ForCausalLM", MISTRAL_3 },
    { .name = "Mistral4ForCausalLM", MISTRAL_4 },
    QSF_HF_END,
};
