/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Models with RMS norms after the branches, alone (OLMo 2, EXAONE 4) or also before them (GLM 4). Sources as in
 * hf/arch/llama.c; ggml-org/llama.cpp conversion/olmo.py, exaone.py, glm.py. */
#include <string.h>

#include "src/file/hf/tables.h"

static const QsfHfKey *const keys[] = { qsf_hf_keys_rms, NULL };

static const QsfHfName after[] = {
    QSF_HF_VECTOR(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("post_attention_norm")),
    QSF_HF_VECTOR(QSF_HF_L("post_feedforward_layernorm"), QSF_HF_B("post_ffw_norm")),
    QSF_HF_END,
};
static const QsfHfName *const after_tables[] = {
    qsf_hf_names_model,    after, qsf_hf_names_qk, qsf_hf_names_vo, qsf_hf_names_mlp,
    qsf_hf_names_qk_norms, NULL,
};

static const QsfHfName glm4_names[] = {
    QSF_HF_VECTOR(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    QSF_HF_VECTOR(QSF_HF_L("post_self_attn_layernorm"), QSF_HF_B("post_attention_norm")),
    QSF_HF_VECTOR(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("ffn_norm")),
    QSF_HF_VECTOR(QSF_HF_L("post_mlp_layernorm"), QSF_HF_B("post_ffw_norm")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.gate_up_proj"), QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX(QSF_HF_L("mlp.down_proj"), QSF_HF_B("ffn_down")),
    QSF_HF_END,
};
static const QsfHfName *const glm4_tables[] = {
    qsf_hf_names_model, qsf_hf_names_qk, qsf_hf_names_vo, glm4_names, NULL,
};

/* OLMo 3 has windows except in every fourth layer. */
static int olmo3(QsfHfModel *m) {
    uint32_t window;
    int rc = qsf_hf_u32(m, "sliding_window", 4096, &window);
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "attention.sliding_window", window);
    return rc == QSF_OK ? qsf_hf_put_windows(m) : rc;
}

/* EXAONE 4: the engine knows the models with windows by their 64 layers. */
static int exaone4(QsfHfModel *m) {
    uint32_t window;
    const QsfJson *text = qsf_hf_member(m->text, "sliding_window_pattern");
    const char *pattern = qsf_json_string(text, NULL);
    if (qsf_hf_member(m->text, "sliding_window") == NULL) return QSF_OK;
    int rc = qsf_hf_u32(m, "sliding_window", 0, &window);
    if (rc == QSF_OK && m->n_layers != 64)
        rc = qsf_hf_bad(m, "sliding_window", "is supported only in models with 64 layers");
    if (rc == QSF_OK && qsf_hf_member(m->text, "layer_types") == NULL && text != NULL &&
        qsf_json_int(text, 0) != 4 && (pattern == NULL || strcmp(pattern, "LLLG") != 0))
        rc = qsf_hf_bad(m, "sliding_window_pattern", "is not 4 or LLLG, which is not supported");
    if (rc == QSF_OK) rc = qsf_hf_put_u32(m, "attention.sliding_window", window);
    return rc == QSF_OK ? qsf_hf_put_windows(m) : rc;
}

const QsfHfArch qsf_hf_arch_around[] = {
    { .name = "Olmo2ForCausalLM",
      .gguf = "olmo2",
      .tensors = after_tables,
      .keys = keys,
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPES_USUAL },
    { .name = "Olmo3ForCausalLM",
      .gguf = "olmo2",
      .tensors = after_tables,
      .keys = keys,
      .must = qsf_hf_must_silu,
      .put = olmo3,
      .ropes = QSF_HF_ROPES_USUAL },
    { .name = "Exaone4ForCausalLM",
      .gguf = "exaone4",
      .tensors = after_tables,
      .keys = keys,
      .must = qsf_hf_must_silu,
      .put = exaone4,
      .ropes = QSF_HF_ROPES_USUAL },
    { .name = "Glm4ForCausalLM",
      .gguf = "glm4",
      .tensors = glm4_tables,
      .keys = keys,
      .must = qsf_hf_must_silu,
      .ropes = QSF_HF_ROPE_PLAIN,
      .kv_heads = 2,
      .head_dim = 128,
      .rotary = 0.5 },
    { 0 },
};
