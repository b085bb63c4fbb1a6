/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Arcee, dots.llm1, Seed OSS and SmolLM 3, which have few tables of their own. Names:
 * huggingface/transformers models/arcee/, models/dots1/, models/seed_oss/, models/smollm3/;
 * ggml-org/llama.cpp conversion/NAME.py. Defaults: transformers' configuration files. */
#include "src/file/hf/experts.h"

static const QsfHfMust arcee_must[] = { { "hidden_act", "relu2" }, QSF_HF_END };

static const QsfHfMust smollm3_must[] = {
    { "hidden_act", "silu|swish" },
    { "no_rope_layer_interval", "4" },
    QSF_HF_END,
};

/* SmolLM 3: no rotation in every fourth layer, which the engine does not read from metadata. */
static int smollm3(QsfHfModel *m) {
    const QsfJson *list = qsf_hf_member(m->text, "no_rope_layers");
    if (list == NULL) return QSF_OK;
    bool usual = qsf_json_size(list) == m->n_layers;
    for (uint32_t i = 0; usual && i < m->n_layers; i++)
        usual = qsf_json_int(qsf_json_at(list, i), -1) == (i % 4 != 3);
    return usual ? QSF_OK
                 : qsf_hf_bad(m, "no_rope_layers", "is not 1, 1, 1, 0 and so on, which is not supported");
}

const QsfHfArch qsf_hf_arch_arcee_dots_seed_smollm[] = {
    { .name = "ArceeForCausalLM",
      .gguf = "arcee",
      .tensors = qsf_hf_like_llama,
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = arcee_must,
      .ropes = QSF_HF_ROPES_USUAL },
    { .name = "Dots1ForCausalLM",
      .gguf = "dots1",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_vo, qsf_hf_names_norms, qsf_hf_names_qk,
                              qsf_hf_names_qk_norms, qsf_hf_names_mlp, qsf_hf_names_experts,
                              qsf_hf_names_stacked, qsf_hf_names_shared_experts),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .put = qsf_hf_experts_put_sigmoid,
      .ropes = QSF_HF_ROPES_YARN,
      .window = QSF_HF_WINDOW_LIMITS },
    { .name = "SeedOssForCausalLM",
      .gguf = "seed_oss",
      .tensors = QSF_HF_NAMES(qsf_hf_names_model, qsf_hf_names_norms_post, qsf_hf_names_qk, qsf_hf_names_vo,
                              qsf_hf_names_mlp),
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPES_USUAL,
      .head_dim = 128 },
    { .name = "SmolLM3ForCausalLM",
      .gguf = "smollm3",
      .tensors = qsf_hf_like_llama,
      .keys = QSF_HF_KEYS(qsf_hf_keys_rms),
      .must = smollm3_must,
      .put = smollm3,
      .ropes = QSF_HF_ROPES_USUAL,
      .window = QSF_HF_WINDOW_SWITCH,
      .tied = true,
      .kv_heads = 4,
      .rope_base = 2e6 },
    QSF_HF_END,
};
