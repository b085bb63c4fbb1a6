/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Nemotron, whose norms multiply by 1 + weight, and Nemotron-H with Mamba-2 layers. Names:
 * huggingface/transformers models/nemotron/, models/nemotron_h/; ggml-org/llama.cpp
 * conversion/nemotron.py. Defaults: transformers' configuration files. */
#include <string.h>

#include "src/file/hf/experts.h"
#include "src/file/hf/layers.h"

/* --- Nemotron --- */

#define NORM1(hf, gguf) QSF_HF_ADD_ONE(hf, gguf), QSF_HF_BIAS(hf, gguf)

static const QsfHfName nemotron_norms[] = {
    NORM1("norm", "output_norm"),
    NORM1(QSF_HF_L("input_layernorm"), QSF_HF_B("attn_norm")),
    NORM1(QSF_HF_L("post_attention_layernorm"), QSF_HF_B("ffn_norm")),
    QSF_HF_END,
};

static const QsfHfMust nemotron_must[] = { { "hidden_act", "relu2" }, QSF_HF_END };

/* --- Nemotron-H: tables --- */

static const QsfHfName names_nemotron_h[] = {
    QSF_HF_ROWS(QSF_HF_L("mixer.q_proj.weight"), QSF_HF_B("attn_q.weight"), 2, qsf_hf_rows_q),
    QSF_HF_ROWS(QSF_HF_L("mixer.k_proj.weight"), QSF_HF_B("attn_k.weight"), 2, qsf_hf_rows_k),
    QSF_HF_MATRIX(QSF_HF_L("mixer.v_proj"), QSF_HF_B("attn_v")),
    QSF_HF_MATRIX(QSF_HF_L("mixer.o_proj"), QSF_HF_B("attn_output")),
    QSF_HF_MATRIX(QSF_HF_L("mixer.up_proj"), QSF_HF_B("ffn_up")),
    QSF_HF_MATRIX(QSF_HF_L("mixer.down_proj"), QSF_HF_B("ffn_down")),
    QSF_HF_END,
};

static const QsfHfName names_nemotron_moe[] = {
    QSF_HF_HOW(QSF_HF_L("mixer.gate.weight"), QSF_HF_B("ffn_gate_inp.weight"), 2, QSF_DERIVE_F32),
    QSF_HF_HOW(QSF_HF_L("mixer.gate.e_score_correction_bias"), QSF_HF_B("exp_probs_b.bias"), 1,
               QSF_DERIVE_F32),
    QSF_HF_MATRIX(QSF_HF_L("mixer.experts.*.up_proj"), QSF_HF_B("ffn_up_exps")),
    QSF_HF_MATRIX(QSF_HF_L("mixer.experts.*.down_proj"), QSF_HF_B("ffn_down_exps")),
    QSF_HF_MATRIX(QSF_HF_L("mixer.shared_experts.up_proj"), QSF_HF_B("ffn_up_shexp")),
    QSF_HF_MATRIX(QSF_HF_L("mixer.shared_experts.down_proj"), QSF_HF_B("ffn_down_shexp")),
    QSF_HF_END,
};

static const QsfHfKey keys_nemotron_moe[] = {
    { "moe_shared_expert_intermediate_size", "expert_shared_feed_forward_length", QSF_HF_U32, QSF_HF_NEEDED,
      1, QSF_HF_NUMBER },
    { "moe_latent_size", "moe_latent_size", QSF_HF_U32, QSF_HF_ABSENT, 1, QSF_HF_NUMBER },
    QSF_HF_END,
};

static const QsfHfMust must_nemotron_h[] = {
    { "mlp_hidden_act", "relu2" }, { "mamba_hidden_act", "silu" }, { "use_bias", "false" },
    { "mlp_bias", "false" },       { "attention_bias", "false" },  { 0 },
};

/* --- Nemotron-H: what the tables cannot express --- */

/* Kinds of blocks of Nemotron-H: a letter each, or a list. */
static int nemotron_kinds(const QsfHfModel *m, uint32_t *kind) {
    static const char *const names[] = { "mamba", "attention", "mlp", "moe", NULL };
    static const char key[] = "hybrid_override_pattern", letters[] = "M*-E";
    const char *pattern = qsf_json_string(qsf_hf_member(m->text, key), NULL);
    int rc = qsf_hf_layers_check(m);
    if (rc == QSF_OK && pattern == NULL)
        return qsf_hf_layer_kinds(m, "layers_block_type|layer_types", names, kind);
    if (rc == QSF_OK && strlen(pattern) != m->n_layers)
        rc = qsf_hf_bad(m, key, "does not have a letter for each of the num_hidden_layers blocks");
    for (uint32_t i = 0; rc == QSF_OK && i < m->n_layers; i++) {
        const char *letter = strchr(letters, pattern[i]);
        if (letter == NULL) return qsf_hf_bad(m, key, "has a letter other than M, *, - and E");
        kind[i] = (uint32_t)(letter - letters);
    }
    return rc;
}

/* Writes the sizes of the blocks. *moe: do some have experts? */
static int put_blocks(QsfHfModel *m, bool *moe) {
    uint32_t kind[QSF_HF_LAYERS], kv[QSF_HF_LAYERS], ffn[QSF_HF_LAYERS], width[4] = { 0 };
    bool has[4] = { false };
    int rc = nemotron_kinds(m, kind);
    for (uint32_t i = 0; rc == QSF_OK && i < m->n_layers; i++) has[kind[i]] = true;
    if (rc == QSF_OK && has[2]) rc = qsf_hf_u32(m, "intermediate_size", 0, &width[2]);
    if (rc == QSF_OK && has[3]) rc = qsf_hf_u32(m, "moe_intermediate_size", 0, &width[3]);
    for (uint32_t i = 0; rc == QSF_OK && i < m->n_layers; i++) {
        kv[i] = kind[i] == 1 ? m->n_kv_heads : 0;
        ffn[i] = width[kind[i]];
    }
    *moe = has[3];
    if (rc == QSF_OK) rc = qsf_hf_put_u32s(m, "attention.head_count_kv", kv, m->n_layers);
    return rc == QSF_OK ? qsf_hf_put_u32s(m, "feed_forward_length", ffn, m->n_layers) : rc;
}

static int put_nemotron_h(QsfHfModel *m) {
    bool moe;
    int rc = put_blocks(m, &moe);
    if (rc == QSF_OK && moe) rc = qsf_hf_bad(m, QSF_HF_EXPERTS, "is missing");
    return rc == QSF_OK ? qsf_hf_put_mamba_heads(m, "mamba_num_heads", "mamba_head_dim") : rc;
}

static int put_nemotron_moe(QsfHfModel *m) {
    bool moe;
    int rc = put_blocks(m, &moe);
    if (rc == QSF_OK) rc = qsf_hf_put_mamba_heads(m, "mamba_num_heads", "mamba_head_dim");
    if (rc != QSF_OK || !moe) return rc;
    return qsf_hf_experts_put_sigmoid(m);
}

/* --- architectures --- */

static const char *const nextn[] = { "mtp.", NULL };

/* Rows for models without experts. */
static const QsfHfMust no_experts[] = { { QSF_HF_EXPERTS, "0" }, QSF_HF_END };

const QsfHfArch qsf_hf_arch_nemotron[] = {
    { .name = "NemotronForCausalLM",
      .gguf = "nemotron",
      .tensors = QSF_HF_NAMES(qsf_hf_names_ends, nemotron_norms, qsf_hf_names_qk, qsf_hf_names_vo,
                              qsf_hf_names_mlp),
      .keys = QSF_HF_KEYS(qsf_hf_keys_layer_norm),
      .must = nemotron_must,
      .ropes = QSF_HF_ROPE_PLAIN | QSF_HF_ROPE_LINEAR,
      .rotary = 0.5 },
    { .name = "NemotronHForCausalLM",
      .gguf = "nemotron_h",
      .tensors = QSF_HF_NAMES(qsf_hf_names_backbone, qsf_hf_names_mixer_2, names_nemotron_h),
      .keys = QSF_HF_KEYS(qsf_hf_keys_mamba, qsf_hf_keys_mamba_2),
      .when = no_experts,
      .must = must_nemotron_h,
      .put = put_nemotron_h,
      .prefixes = qsf_hf_backbone,
      .left_out = nextn,
      .ffn_times = QSF_HF_NO_FFN,
      .own_kv_heads = true },
    { .name = "NemotronHForCausalLM",
      .gguf = "nemotron_h_moe",
      .tensors = QSF_HF_NAMES(qsf_hf_names_backbone, qsf_hf_names_mixer_2, names_nemotron_h,
                              names_nemotron_moe),
      .keys = QSF_HF_KEYS(qsf_hf_keys_mamba, qsf_hf_keys_mamba_2, keys_nemotron_moe),
      .must = must_nemotron_h,
      .put = put_nemotron_moe,
      .prefixes = qsf_hf_backbone,
      .left_out = nextn,
      .ffn_times = QSF_HF_NO_FFN,
      .own_kv_heads = true },
    QSF_HF_END,
};
